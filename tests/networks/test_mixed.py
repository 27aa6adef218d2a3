"""Observations with pictures and vectors among their parts, from a log to an exported policy."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dr3
from dr3.data import assemble, describe
from dr3.data.standardisation import Standardisation
from dr3.envs.parts import Part, Parts
from dr3.errors import UserError
from dr3.networks import MixedEncoder, trunk_for
from dr3.networks.mixed import parts_of, unpacked

ROWS = 40
PARTS = Parts((Part("camera", (8, 8, 1), "uint8"), Part("joints", (2,), "float32"), Part("walls", (3, 3, 2), "bool")))


@pytest.fixture(scope="module")
def seen():
    random = np.random.default_rng(0)
    return {
        "joints": random.normal(50, 10, (ROWS, 2)),
        "walls": random.random((ROWS, 3, 3, 2)) < 0.5,
        "camera": random.integers(0, 256, (ROWS, 8, 8, 1), dtype=np.uint8),
    }


@pytest.fixture(scope="module")
def logged(seen):
    random = np.random.default_rng(1)
    columns = {"actions": random.integers(0, 3, ROWS), "rewards": random.normal(size=ROWS)}
    columns |= {"terminals": np.arange(ROWS) % 10 == 9, "masks": np.ones((ROWS, 3), bool)}
    return assemble({"observations": seen, **columns}, source="memory", name="mixed")


def test_a_row_is_the_bytes_of_all_parts_by_name(seen, logged):
    assert logged.parts == PARTS
    assert logged.observations.shape == (ROWS, 64 + 8 + 18)
    assert logged.observations.dtype == np.uint8
    apart = PARTS.unpack(logged.observations)
    on_device = unpacked(PARTS, jnp.asarray(logged.observations))
    for name, part in seen.items():
        np.testing.assert_array_equal(apart[name], part.astype(apart[name].dtype))
        np.testing.assert_array_equal(on_device[name], apart[name])
    np.testing.assert_array_equal(logged.vectors[:3], seen["joints"][:3].astype(np.float32))
    assert Parts.of({"a": np.zeros(3), "b": np.zeros((2, 2))}) is None  # no picture: one vector, as ever


def test_pictures_pass_their_encoder_and_vectors_are_standardised(seen, logged):
    columns = Standardisation.of(logged.vectors)
    trunk: Any = trunk_for("auto", PARTS, (5, 4), key=jax.random.key(0), standardisation=columns)
    encoder = trunk.encoder
    assert isinstance(encoder, MixedEncoder)
    assert (encoder.width, trunk.width) == (5 + 5 + 2, 4)
    joined = encoder(jnp.asarray(logged.observations))
    by_hand = (seen["joints"] - seen["joints"].mean(0)) / seen["joints"].std(0)
    np.testing.assert_allclose(joined[:, -2:], by_hand, atol=1e-4)
    np.testing.assert_allclose(joined[:, :5], encoder.encoders[0](jnp.asarray(seen["camera"])), rtol=1e-6)
    np.testing.assert_array_equal(trunk(PARTS.unpack(logged.observations)), trunk(jnp.asarray(logged.observations)))
    assert list(trunk.layers())[:2] == ["camera-conv1", "camera-dense"]
    assert parts_of(trunk) == PARTS


@pytest.mark.parametrize("ending", ["npz", "hdf5"])
def test_files_keep_the_parts(logged, tmp_path, ending):
    dr3.data.write(tmp_path / f"mixed.{ending}", logged)
    again = dr3.load(tmp_path / f"mixed.{ending}")
    assert again.parts == PARTS
    assert again.fingerprint() == logged.fingerprint()
    with pytest.raises(UserError, match=r"written as \.npz or \.hdf5"):
        dr3.data.write_minari(tmp_path / "folder", logged)


def test_each_part_is_described(logged):
    found = describe(logged)
    assert found.columns is not None
    assert [column.name for column in found.columns] == ["joints[0]", "joints[1]"]
    assert [column.name for column in found.pictures] == ["camera (8, 8, 1)", "walls (3, 3, 2)"]
    assert any("far from unit scale (the first is joints[0]" in fault for fault in found.faults)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"joints": np.full((ROWS, 2), np.nan)}, "'joints' of observation 0 holds a number that is not finite"),
        ({"camera": np.zeros((ROWS, 8, 8, 1))}, "'camera' of observations must be of type uint8"),
        ({"walls": np.zeros((ROWS, 3, 3), bool)}, "'walls' of 40 observations must be numbers of shape"),
        ({"more": np.zeros(ROWS)}, "have the parts camera, joints, walls, not"),
    ],
)
def test_other_observations_are_refused_by_their_part(seen, changed, sentence):
    with pytest.raises(UserError, match=sentence):
        PARTS.pack({**seen, **changed}, rows=ROWS)


def test_minari_keeps_each_picture_once(seen, tmp_path):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "data").mkdir()
    with h5py.File(tmp_path / "data" / "main_data.hdf5", "w") as file:
        for number in range(2):
            group, rows = file.create_group(f"episode_{number}"), slice(20 * number, 20 * number + 6)
            for name, part in seen.items():
                group[f"observations/{name}"] = part[rows]
            group["actions"], group["rewards"] = np.arange(5) % 2, np.ones(5)
            group["terminations"], group["truncations"] = np.arange(5) == 4, np.zeros(5, bool)
    space = {"type": "Discrete", "dtype": "int64", "start": 0, "n": 2}
    about = {"data_format": "hdf5", "dataset_id": "mixed", "action_space": json.dumps(space)}
    (tmp_path / "data" / "metadata.json").write_text(json.dumps(about))
    data: Any = dr3.load(tmp_path)
    assert (data.parts, len(data)) == (PARTS, 10)
    assert data.observations.stored is data.next_observations.stored
    np.testing.assert_array_equal(PARTS.unpack(data.next_observations[:])["walls"][5], seen["walls"][21])


@pytest.mark.slow
def test_it_is_trained_acted_on_and_exported(seen, logged, tmp_path):
    pytest.importorskip("onnxruntime")
    dr3.data.write(tmp_path / "mixed.npz", logged)
    method = dr3.CQL(hidden=(6,), batch_size=8, standardise=True)
    runs = dr3.train(dr3.load(tmp_path / "mixed.npz"), method, steps=2, out=tmp_path / "run", progress=False)
    runs = dr3.Runs(runs.path)  # as read back
    assert runs.spec.parts == PARTS
    np.testing.assert_array_equal(runs.policy(seen), runs.policy(logged.observations))
    with pytest.raises(UserError, match="a mapping of their parts"):
        runs.policy(seen["joints"])
    from dr3.export import export_policy, verify

    written = export_policy(runs, tmp_path / "policy.onnx")
    named = [one["name"] for one in written.record["inputs"]]
    assert named == ["observation.camera", "observation.joints", "observation.walls", "mask"]
    assert verify(written.policy, data=tmp_path / "mixed.npz").same


@pytest.mark.slow
def test_continuous_methods_take_it_too(seen, logged, tmp_path):
    columns = {"actions": np.zeros((ROWS, 2), np.float32), "rewards": logged.rewards, "terminals": logged.terminals}
    data = assemble({"observations": seen, **columns}, source="memory", name="mixed")
    method = dr3.TD3BC(hidden=(6,), policy_hidden=(6,), channels=(2, 2), batch_size=8)
    runs = dr3.train(data, method, steps=1, out=tmp_path / "run", progress=False)
    assert runs.policy(seen).shape == (ROWS, 2)
