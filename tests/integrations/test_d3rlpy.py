"""Against the real d3rlpy: with coefficient 0 it must train as d3rlpy does, bit for bit."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

import dr3
from dr3.data.transitions import ContinuousActions
from dr3.errors import UserError

pytest.importorskip("torch", reason="PyTorch is not installed: make test TORCH=1 installs it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # d3rlpy imports gym, which warns about itself
    d3rlpy = pytest.importorskip("d3rlpy", reason="d3rlpy is not installed: make test TORCH=1 installs it")
    from dr3.integrations import d3rlpy as ours

pytestmark = pytest.mark.filterwarnings("ignore")

PAIRS = {
    "dqn": (d3rlpy.algos.DQNConfig, ours.DR3DQNConfig),
    "discrete_cql": (d3rlpy.algos.DiscreteCQLConfig, ours.DR3DiscreteCQLConfig),
    "cql": (d3rlpy.algos.CQLConfig, ours.DR3CQLConfig),
    "sac": (d3rlpy.algos.SACConfig, ours.DR3SACConfig),
}


def is_discrete(name):
    return name in ("dqn", "discrete_cql")


def settings(name):
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=[6, 5])
    if is_discrete(name):
        return {"batch_size": 8, "encoder_factory": encoder}
    return {"batch_size": 8, "actor_encoder_factory": encoder, "critic_encoder_factory": encoder}


def table(name, logged):
    if is_discrete(name):
        return logged
    random = np.random.default_rng(0)
    actions = random.uniform(-1, 1, size=(2, len(logged), 2)).astype(np.float32)
    return dataclasses.replace(logged, actions=actions[0], next_actions=actions[1], action_space=ContinuousActions(2))


def dataset(data):
    ends = np.append(data.episodes[1:] != data.episodes[:-1], True)
    return d3rlpy.dataset.MDPDataset(
        observations=data.observations.astype(np.float32),
        actions=data.actions,
        rewards=data.rewards,
        terminals=data.terminals.astype(np.float32),
        timeouts=(ends & ~data.terminals).astype(np.float32),
    )


def fitted(config, data, steps=5):
    d3rlpy.seed(0)
    algorithm = config.create()
    history = algorithm.fit(
        dataset(data),
        n_steps=steps,
        n_steps_per_epoch=steps,
        show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )
    return algorithm, history[-1][1]


def weights(algorithm):
    return np.concatenate([p.detach().numpy().ravel() for p in algorithm.impl.q_function.parameters()])


@pytest.mark.parametrize("name", ["dqn", "discrete_cql", "cql"])
def test_coefficient_zero_is_d3rlpy(name, logged):
    theirs, with_dr3 = PAIRS[name]
    data = table(name, logged)
    plain, _ = fitted(theirs(**settings(name)), data)
    none, _ = fitted(with_dr3(dr3="dr3:0", **settings(name)), data)
    assert (weights(plain) == weights(none)).all()


@pytest.mark.parametrize("name", PAIRS)
def test_the_penalty_is_logged_and_pulls_dot_products_down(name, logged):
    data = table(name, logged)
    small, metrics = fitted(PAIRS[name][1](dr3="dr3:0", **settings(name)), data, steps=60)
    large, _ = fitted(PAIRS[name][1](dr3="dr3:10", **settings(name)), data, steps=60)
    assert np.isfinite(metrics["dr3"])

    def dot_product(algorithm):
        return dr3.diagnose(algorithm, data).measurements.columns["features/dot_product"][0, 0]

    assert dot_product(large) < dot_product(small)


def test_per_action_counts_only_equal_actions(logged):
    _, exact = fitted(ours.DR3DQNConfig(dr3="dr3:0.1:per_action", **settings("dqn")), logged, steps=1)
    _, all_actions = fitted(ours.DR3DQNConfig(dr3="dr3:0.1", **settings("dqn")), logged, steps=1)
    assert 0 <= exact["dr3"] < all_actions["dr3"]


def test_saved_and_loaded(logged, tmp_path):
    algorithm, _ = fitted(ours.DR3DQNConfig(dr3="dr3:0.5", **settings("dqn")), logged)
    algorithm.save(str(tmp_path / "model.d3"))
    loaded = d3rlpy.load_learnable(str(tmp_path / "model.d3"))
    assert isinstance(loaded, ours.DR3DQN)
    assert loaded.config.dr3 == "dr3:0.5"
    assert (weights(loaded) == weights(algorithm)).all()
    assert loaded.impl.regularizer.coefficient == 0.5


@pytest.mark.parametrize("name", PAIRS)
def test_what_the_doctor_sees_is_what_d3rlpy_predicts(name, logged):
    data = table(name, logged)
    algorithm, _ = fitted(PAIRS[name][0](**settings(name), **({"n_critics": 1} if not is_discrete(name) else {})), data)
    observations = data.observations.astype(np.float32)
    found = dr3.diagnose(algorithm, data).measurements.columns
    assert found["q/mean"][0, 0] == pytest.approx(algorithm.predict_value(observations, data.actions).mean(), rel=1e-4)


def test_mistakes(logged):
    with pytest.raises(UserError, match="no networks yet"):
        dr3.diagnose(d3rlpy.algos.DQNConfig().create(), logged)
    inherited: Any = {"q_func_factory": d3rlpy.models.IQNQFunctionFactory()}  # a field that only d3rlpy declares
    quantiles = ours.DR3DQNConfig(**inherited, **settings("dqn"))
    with pytest.raises(UserError, match="mean Q function"):
        fitted(quantiles, logged)


@pytest.mark.parametrize("config", [pair[1] for pair in PAIRS.values()])
@pytest.mark.parametrize(
    ("word", "says"),
    [("none", r"dr3:0\.03"), ("dr4:0.1", "no regularizer 'dr4'"), ("dr3:-1", "at least 0"), (0.1, "must spell a DR3")],
)
def test_a_word_that_is_no_dr3_is_refused_by_the_configuration(config, word, says):
    with pytest.raises(UserError, match=says):
        config(dr3=word)
