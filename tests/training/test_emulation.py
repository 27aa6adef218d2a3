from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data import DiscreteActions
from dr3.errors import UserError
from dr3.methods import DQN, Spec
from dr3.training.emulation import EmulatedRollouts
from dr3.training.evaluation import Policy, evaluator_for

METHOD = DQN(network="mlp", hidden=(4,))
SPEC = Spec((2, 2, 4), DiscreteActions(2))


def always(action: int) -> Policy:
    learner = METHOD.init(SPEC, jax.random.key(0))
    critic = jax.tree.map(jnp.zeros_like, learner.critic)
    head = critic.head
    return Policy(METHOD, type(critic)(critic.trunk, type(head)(head.weight, head.bias.at[action].set(1.0))), SPEC)


def test_climbing_earns_the_raw_reward_and_staying_runs_out_of_time(ladder) -> None:
    """Four steps up where nothing slips; each slip is one step more."""
    evaluator = EmulatedRollouts(ladder, episodes=20, epsilon=0.0)
    up = evaluator(always(1), seed=0, step=0, discount=0.5)
    assert set(up["returns"]) == {3.0}
    assert 4 < up["evaluation/length"] < 6
    assert 3 * 0.5**5 < up["evaluation/discounted_value"] < 3 * 0.5**3
    stay = evaluator(always(0), seed=0, step=0, discount=0.5)
    assert set(stay["returns"]) == {0.0}
    assert stay["evaluation/length"] == 9


def test_chance_is_a_function_of_seed_and_step(ladder) -> None:
    evaluator = EmulatedRollouts(ladder, episodes=16, epsilon=1.0)
    first, again, other, later = (
        evaluator(always(0), seed=seed, step=step, discount=0.9) for seed, step in ((0, 5), (0, 5), (1, 5), (0, 6))
    )
    assert first == again
    assert first["returns"] != other["returns"]
    assert first["returns"] != later["returns"]


def test_the_policy_sees_the_last_frames(ladder) -> None:
    seen = []

    class Watching:
        def check_observations(self, shape) -> None:
            assert shape == SPEC.observation_shape

        def check_actions(self, space) -> None:
            assert space == SPEC.action_space

        def __call__(self, observations):
            seen.append(observations[0, 0, 1].tolist())
            return np.zeros(len(observations), np.int64)

    EmulatedRollouts(ladder, episodes=1, epsilon=0.0)(Watching(), seed=0, step=0, discount=1.0)  # ty: ignore
    assert seen[:5] == [[0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]


def test_atari_is_tried_with_epsilon_0_001() -> None:
    pytest.importorskip("ale_py")
    evaluator = evaluator_for("atari/Pong", episodes=2)
    kind = {"kind": "emulated rollouts", "world": "atari/Pong", "episodes": 2, "epsilon": 0.001}
    assert evaluator.describe() == kind
    with pytest.raises(UserError, match=r"observations have the shape \(2, 2, 4\).*\(84, 84, 4\)"):
        evaluator(always(0), seed=0, step=0, discount=0.9)
    with pytest.raises(UserError, match="There is no game 'atari/Nothing'"):
        evaluator_for("atari/Nothing")
