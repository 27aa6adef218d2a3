from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data import DiscreteActions
from dr3.errors import UserError
from dr3.methods import DQN, Spec
from dr3.training import train
from dr3.training.evaluation import CompiledRollouts, Policy, evaluator_for

METHOD = DQN(hidden=(4,))


def always(action: int, corridor) -> Policy:
    """A critic whose last layer prefers one action everywhere."""
    spec = Spec(corridor.observation_shape, DiscreteActions(2))
    learner = METHOD.init(spec, jax.random.key(0))
    critic = jax.tree.map(jnp.zeros_like, learner.critic)
    head = critic.head
    critic = type(critic)(critic.trunk, type(head)(head.weight, head.bias.at[action].set(1.0)))
    return Policy(METHOD, critic, spec)


def test_right_reaches_the_end_and_left_is_cut(corridor) -> None:
    """Five cells: four steps to the right, 1 for the last of them; to the left nothing ever happens."""
    evaluator = CompiledRollouts(corridor, episodes=3, epsilon=0.0, limit=7)
    right = evaluator(always(1, corridor), seed=0, step=0, discount=0.5)
    assert right["returns"] == [1.0, 1.0, 1.0]
    assert right["evaluation/discounted_value"] == 0.5**3
    assert right["evaluation/length"] == 4
    left = evaluator(always(0, corridor), seed=0, step=0, discount=0.5)
    assert left["returns"] == [0.0, 0.0, 0.0]
    assert left["evaluation/length"] == 7


def test_chance_is_a_function_of_seed_and_step(corridor) -> None:
    evaluator = CompiledRollouts(corridor, episodes=16, epsilon=1.0, limit=9)
    policy = always(0, corridor)

    def lengths(seed: int, step: int) -> float:
        return evaluator(policy, seed=seed, step=step, discount=0.9)["evaluation/discounted_value"]

    assert lengths(0, 5) == lengths(0, 5)
    assert len({lengths(0, 5), lengths(1, 5), lengths(0, 6)}) == 3


def test_one_program_serves_every_checkpoint(corridor, caplog) -> None:
    evaluator = CompiledRollouts(corridor, episodes=2, epsilon=0.0, limit=7)
    evaluator(always(0, corridor), seed=0, step=0, discount=0.5)
    with jax.log_compiles(), caplog.at_level("WARNING", "jax"):
        evaluator(always(1, corridor), seed=3, step=8, discount=0.25)
    assert not [record for record in caplog.records if "play" in record.getMessage()]


def test_a_world_of_another_shape_is_refused(corridor) -> None:
    policy = Policy(METHOD, None, Spec((3,), DiscreteActions(2)))
    with pytest.raises(UserError, match=r"shape \(3,\).*\(5,\)"):
        CompiledRollouts(corridor)(policy, seed=0, step=0, discount=0.9)


def test_training_tries_policies_in_a_compiled_world(corridor, corridor_log, tmp_path) -> None:
    runs = train(
        corridor_log, METHOD, steps=4, out=tmp_path / "run", env=CompiledRollouts(corridor, episodes=2), progress=False
    )
    assert runs.config.evaluation is not None
    assert runs.config.evaluation["kind"] == "compiled rollouts"
    assert np.isfinite(runs.evaluations["evaluation/return"]).all()


def test_a_game_is_found_by_its_name() -> None:
    pytest.importorskip("pgx")
    evaluator = evaluator_for("minatar/breakout", episodes=3)
    assert evaluator.describe()["world"] == "minatar/breakout"
    assert evaluator.describe()["episodes"] == 3
