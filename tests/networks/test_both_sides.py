"""Both sides of a batch in one pass."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3 import CQL, DQN, DR3, REM, FeatureNorm, LabelNoiseDR3, SrankPenalty
from dr3.data.batch import Batch
from dr3.data.transitions import DiscreteActions
from dr3.methods import Spec
from dr3.methods.base import objective
from dr3.networks.kernels.both_sides import both_sides, in_one_pass

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    here, following = (jnp.asarray(rng.normal(size=(6, 4)), jnp.float32) for _ in range(2))
    actions = jnp.asarray(rng.integers(0, 3, 6), jnp.int32)
    rewards = jnp.asarray(rng.normal(size=6), jnp.float32)
    return Batch(here, actions, rewards, following, jnp.zeros(6), actions, rewards, None)


@pytest.mark.parametrize(
    "method", [DQN(hidden=(5,)), REM(hidden=(5,), heads=4), CQL(hidden=(5,))], ids=lambda m: m.name
)
def test_one_pass_has_the_objective_and_the_gradient_of_two(method, batch):
    learner = method.init(Spec((4,), DiscreteActions(3)), KEY)

    def of(look):
        def total(critic):
            return objective(method, DR3(0.5), look(critic), learner, batch, KEY)[0]

        slope = jax.value_and_grad(total)
        return str(jax.make_jaxpr(slope)(learner.critic)).count("dot_general"), jax.jit(slope)(learner.critic)

    (fewer, one), (more, two) = of(in_one_pass), of(lambda critic: critic)
    assert fewer < more
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, two)


def test_a_critic_in_one_pass_is_the_same_critic(batch):
    critic = DQN(hidden=(5,)).init(Spec((4,), DiscreteActions(3)), KEY).critic
    looking = in_one_pass(critic)
    for one, two in zip(both_sides(looking, batch), both_sides(critic, batch), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(looking.features(batch.observations), critic.features(batch.observations))
    assert list(looking.layers()) == list(critic.layers())


@pytest.mark.parametrize(
    ("regularizer", "reaches"),
    [
        (DR3(), True),
        (DR3(stop_gradient="next"), False),
        (FeatureNorm(), True),
        (LabelNoiseDR3(), True),
        (LabelNoiseDR3(scope="all"), False),
        (SrankPenalty(), False),
    ],
)
def test_a_regularizer_says_whether_a_gradient_reaches_the_other_side(regularizer, reaches, batch):
    method = DQN(hidden=(5,))
    learner = method.init(Spec((4,), DiscreteActions(3)), KEY)
    assert getattr(regularizer, "reaches_next", False) == reaches
    if isinstance(regularizer, LabelNoiseDR3) and regularizer.scope == "all":
        return  # of that one gradients of Q are asked for, and no features

    def penalty(phi_next):
        backup = method.loss(learner.critic, learner, batch, KEY)[1][0]
        return regularizer(backup._replace(phi_next=phi_next))

    slope = jax.grad(penalty)(learner.critic.features(batch.next_observations))
    assert bool(jnp.any(slope != 0)) == reaches
