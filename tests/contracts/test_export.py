"""What every method owes to `dr3 export`: one file that acts as the run does. A new method is held to it."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from dr3.data.transitions import Transitions
from dr3.export import export_policy, verify
from dr3.files import write_json
from dr3.methods import CQL, DQN, METHODS, REM, SAC, ContinuousMethod
from dr3.runs import Runs
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder
from dr3.runs.member import Member

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

# Over six units a variance may be tiny, and dividing by its root makes more of rounding than a replay allows.
SMALL = {"hidden": (8, 6), "policy_hidden": (8,), "channels": (2, 3), "crop": 1, "heads": 3, "layer_norm": False}
AT = 5  # the step that the runs pretend to have reached


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly():
    """Small arrays: compiling is what these tests cost."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def small(method: Any) -> Any:
    return dataclasses.replace(method, **{name: value for name, value in SMALL.items() if hasattr(method, name)})


@partial(jax.jit, static_argnums=1)
def fresh(method, spec, key):
    return method.model(method.init(spec, key))


def run_of(folder, method: Any, data: Transitions) -> Runs:
    """A run of two members that was not trained: what is exported is a network, whatever its weights."""
    members = [Member(method, None, seed) for seed in (0, 1)]
    config = RunConfig.of(data, members, steps=AT)
    write_json(folder / "config.json", config.to_json())
    critics = [fresh(method, config.spec, jax.random.key(seed)) for seed in (0, 1)]
    # Biases are zero at first in some networks, and would hide one that is left out.
    moved = jax.tree.map(
        lambda leaf: leaf + 0.01 * np.arange(leaf.size, dtype=np.float32).reshape(leaf.shape) % 0.1, critics
    )
    RunFolder(folder).checkpoints.save(0, critics)
    RunFolder(folder).checkpoints.save(AT, moved)
    return Runs(folder)


def images(logged: Transitions, shape: tuple[int, ...], dtype: Any) -> Transitions:
    random = np.random.default_rng(3)
    seen = random.integers(0, 256 if dtype == np.uint8 else 2, (2, len(logged), *shape)).astype(dtype)
    return dataclasses.replace(logged, observations=seen[0], next_observations=seen[1])


def check(runs: Runs, data: Transitions, out, **choices: Any) -> dict[str, Any]:
    """Export, replay without JAX, and compare with what the run says of all rows."""
    written = export_policy(runs, out, data=data, doctor=False, **choices)
    found = verify(out)
    assert found.same, found.why
    assert found.rows == len(data)
    assert found.largest_difference < 1e-5
    assert json.loads(written.contract.read_text()) == written.record
    return written.record


def replay(path, **inputs: Any) -> dict[str, Any]:
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.fixture(params=list(METHODS))
def exported(request, tmp_path, logged, logged_continuous, logged_pictures):
    method = small(METHODS[request.param]())
    data = logged if not isinstance(method, ContinuousMethod) else logged_pictures if method.crop else logged_continuous
    data = method.prepare(data)
    runs = run_of(tmp_path, method, data)
    return runs, data, check(runs, data, tmp_path / "policy.onnx"), tmp_path / "policy.onnx"


def test_the_file_acts_as_the_run_does_in_any_number_of_rows(exported):
    runs, data, record, path = exported
    assert (record["member"], record["step"]) == (0, AT)
    assert record["data"]["fingerprint"] == data.fingerprint()
    assert record["discount"] == runs.members[0].method.discount
    actions = runs.policy(data.observations[:3])
    for count in (1, 3):
        outputs = replay(path, observation=np.asarray(data.observations[:count]))
        assert outputs["action"].dtype == actions.dtype
        np.testing.assert_allclose(outputs["action"], actions[:count], rtol=1e-5, atol=1e-6)
        promised = {one["name"]: (one["dtype"], [count, *one["shape"][1:]]) for one in record["outputs"]}
        assert {name: (array.dtype.name, list(array.shape)) for name, array in outputs.items()} == promised


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "shape", "dtype"),
    [
        (REM(network="nature"), (36, 37, 4), np.uint8),  # bytes, a stack of frames, an odd side, SAME
        (DQN(network="nature-valid"), (40, 36, 1), np.uint8),
        (DQN(network="minatar"), (10, 10, 4), np.bool_),
        (CQL(quantiles=4, normalise_features=True), (5,), np.int32),
        (DQN(network="mlp"), (4, 4, 2), np.uint8),  # bytes of images are pixels for dense layers, too
        (DQN(standardise=True), (3,), np.float32),  # given as they are: the file standardises
    ],
)
def test_other_networks_and_observations(tmp_path, logged, method, shape, dtype):
    data = images(logged, shape, dtype)
    record = check(run_of(tmp_path, small(method), data), data, tmp_path / "policy.onnx", member=1, step=AT)
    assert record["inputs"][0]["dtype"] == np.dtype(dtype).name
    assert record["inputs"][0]["shape"] == ["n", *shape]


def test_a_mask_is_an_input(tmp_path, logged):
    runs = run_of(tmp_path, small(DQN()), logged)
    path = tmp_path / "policy.onnx"
    record = check(runs, logged, path, mask=True)
    assert record["mask"]
    seen, values = logged.observations, runs.action_values(logged.observations)
    forbidden = np.eye(3, dtype=np.bool_)[values.argmax(axis=1)]
    action = replay(path, observation=seen, mask=~forbidden)["action"]
    np.testing.assert_array_equal(action, np.where(forbidden, -np.inf, values).argmax(axis=1))
    np.testing.assert_array_equal(action, runs.policy(seen, ~forbidden))
    np.testing.assert_array_equal(runs.probabilities(seen, ~forbidden).argmax(axis=1), action)


def test_masks_in_the_data_make_it_one(tmp_path, logged):
    allowed = np.ones((len(logged), 3), np.bool_)
    allowed[:, 0] = logged.actions == 0
    data = dataclasses.replace(logged, masks=allowed, next_masks=allowed)
    record = check(run_of(tmp_path, small(DQN()), data), data, tmp_path / "policy.onnx")
    assert [one["name"] for one in record["inputs"]] == ["observation", "mask"]


def test_scaling_is_inside(tmp_path, logged):
    """Observations go in as they were logged: columns far from unit scale are the network's own business."""
    data = dataclasses.replace(logged, observations=logged.observations * np.array([1, 10, 100, 1000], np.float32) + 7)
    record = check(
        run_of(tmp_path, small(DQN(standardise=True, reward_scale=2.0)), data), data, tmp_path / "policy.onnx"
    )
    columns = record["scaling"]["standardised"]
    np.testing.assert_allclose(columns["mean"], data.observations.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(columns["deviation"], data.observations.std(axis=0), rtol=1e-4)
    assert record["rewards"]["scale"] == 2.0


def test_sampling_is_a_function_of_noise(tmp_path, logged_continuous):
    runs = run_of(tmp_path, small(SAC()), logged_continuous)
    path = tmp_path / "policy.onnx"
    record = check(runs, logged_continuous, path, sample=True)
    assert "normal" in record["acts"]
    seen = logged_continuous.observations
    still = replay(path, observation=seen, noise=np.zeros((48, 2), np.float32))["action"]
    np.testing.assert_allclose(still, runs.policy(seen), rtol=1e-5)
    moved = replay(path, observation=seen, noise=np.full((48, 2), 3.0, np.float32))["action"]
    assert (moved > still).all()
    assert (moved <= 3).all()


class Drawing(DQN):
    """A method that draws: the probabilities are a softmax of Q."""

    def probabilities(self, critic, observations):
        return jax.nn.softmax(self.action_values(critic, observations))

    def act(self, critic, observations):
        return self.probabilities(critic, observations).argmax(axis=-1)


def test_a_method_that_draws_among_actions_is_sampled_by_a_uniform_number(tmp_path, logged, monkeypatch):
    from dr3.hyperparameters import hyperparameters

    monkeypatch.setitem(METHODS.built_in, "dqn", hyperparameters(Drawing))
    runs = run_of(tmp_path, small(Drawing()), logged)
    path = tmp_path / "policy.onnx"
    check(runs, logged, path, sample=True, mask=True)
    shares = runs.probabilities(logged.observations)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    draws = np.random.default_rng(0).random(48).astype(np.float32)
    everything = np.ones((48, 3), np.bool_)
    outputs = replay(path, observation=logged.observations, mask=everything, noise=draws)
    np.testing.assert_allclose(outputs["probabilities"], shares, rtol=1e-5)
    np.testing.assert_array_equal(outputs["action"], (shares.cumsum(axis=1) > draws[:, None]).argmax(axis=1))


def test_stablehlo_is_read_by_jax_for_any_number_of_rows(tmp_path, logged_pictures):
    pytest.importorskip("flatbuffers")
    runs = run_of(tmp_path, small(METHODS["cog"]()), logged_pictures)
    written = export_policy(runs, tmp_path / "policy.stablehlo", data=logged_pictures, to="stablehlo")
    acting = jax.export.deserialize(bytearray(written.policy.read_bytes()))
    for count in (1, 3):
        seen = logged_pictures.observations[:count]
        np.testing.assert_allclose(acting.call(seen)["action"], runs.policy(seen), rtol=1e-5, atol=1e-6)
    assert set(acting.platforms) == {"cpu", "cuda", "rocm", "tpu"}


def test_weights_are_named_as_in_a_checkpoint(tmp_path, logged):
    runs = run_of(tmp_path, small(DQN()), logged)
    written = export_policy(runs, tmp_path / "weights.npz", data=logged, to="npz", member=1)
    with np.load(written.policy) as weights, np.load(runs.folder.checkpoints.path(AT)) as checkpoint:
        assert sorted(weights) == sorted(name[2:] for name in checkpoint if name.startswith("1."))
        for name in weights:
            np.testing.assert_array_equal(weights[name], checkpoint[f"1.{name}"])
