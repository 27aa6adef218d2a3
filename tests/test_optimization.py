"""Optimizers by hand and beside Optax; a target network's way towards its critic."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dr3.errors import UserError
from dr3.hyperparameters import to_json
from dr3.methods import DQN, SAC
from dr3.optimization import Adam, OptimizerName, gradient_length, move, optimizer_for


def test_the_first_two_steps_by_hand() -> None:
    adam = Adam(learning_rate=0.1, epsilon=0.5)
    weight = jnp.array([1.0])
    weight, memory = adam.step(weight, jnp.array([2.0]), adam.init(weight))
    # m = 0.2 and v = 0.004, corrected 2 and 4: 0.1 · 2 / (2 + 0.5).
    np.testing.assert_allclose(weight, [1 - 0.08], rtol=1e-6)
    assert float(gradient_length(memory) or 0) == pytest.approx(2, rel=1e-5)
    weight, memory = adam.step(weight, jnp.array([-4.0]), memory)
    mean, square = (0.9 * 0.2 - 0.1 * 4) / (1 - 0.81), (0.999 * 0.004 + 0.001 * 16) / (1 - 0.999**2)
    np.testing.assert_allclose(weight, [1 - 0.08 - 0.1 * mean / (square**0.5 + 0.5)], rtol=1e-6)
    assert float(gradient_length(memory) or 0) == pytest.approx(square**0.5, rel=1e-4)


@pytest.mark.parametrize(("name", "length"), [("adamw", 5.0), ("rmsprop", 5 * 0.1**0.5), ("sgd", None)])
def test_the_length_of_past_gradients(name: OptimizerName, length: float | None) -> None:
    optimizer, weights = optimizer_for(name, 0.1, 1e-8), {"a": jnp.array([1.0]), "b": jnp.array([1.0])}
    gradient = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    found = gradient_length(optimizer.step(weights, gradient, optimizer.init(weights))[1])
    assert found is None if length is None else float(found or 0) == pytest.approx(length, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1e-8, 3.125e-4, 1.0])
def test_it_walks_as_optax_does(epsilon: float) -> None:
    ours, theirs = Adam(1e-2, epsilon), optax.adam(1e-2, eps=epsilon)
    start = {"weight": jnp.linspace(-1, 1, 12).reshape(3, 4), "bias": jnp.zeros(3)}

    def slope(parameters: dict[str, jax.Array], step: jax.Array) -> dict[str, jax.Array]:
        return jax.tree.map(lambda leaf: 10.0 ** (step % 7 - 5) * jnp.cos(3 * leaf + step), parameters)

    def both(step, state):
        (mine, memory), (yours, record) = state
        change, record = theirs.update(slope(yours, step), record)
        return ours.step(mine, slope(mine, step), memory), (optax.apply_updates(yours, change), record)

    begun = (start, ours.init(start)), (start, theirs.init(start))
    (mine, memory), (yours, record) = jax.lax.fori_loop(0, 300, both, begun)
    assert jax.tree.structure(memory) == jax.tree.structure(record)
    for left, right in zip(jax.tree.leaves((mine, memory)), jax.tree.leaves((yours, record)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-6)


# One step from w = 1 with g = 2, α = 0.1 and ε = 0.5. First steps of Adam are corrected: m̂ = g, v̂ = g².
BY_HAND: dict[OptimizerName, float] = {
    "adam": 1 - 0.1 * 2 / (2 + 0.5),
    "adamw": 1 - 0.1 * (2 / (2 + 0.5) + 1e-4 * 1),
    "rmsprop": 1 - 0.1 * 2 / ((0.1 * 2**2) ** 0.5 + 0.5),
    "sgd": 1 - 0.1 * 2,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_one_step_of_each_by_hand(name: OptimizerName) -> None:
    optimizer = optimizer_for(name, 0.1, 0.5)
    weight = jnp.array([1.0])
    np.testing.assert_allclose(
        optimizer.step(weight, jnp.array([2.0]), optimizer.init(weight))[0], [BY_HAND[name]], rtol=1e-6
    )


def test_weight_decay_by_hand_and_only_where_something_looks_at_it() -> None:
    optimizer, weight = optimizer_for("adamw", 0.1, 0.5, 0.2), jnp.array([1.0])
    found = optimizer.step(weight, jnp.array([2.0]), optimizer.init(weight))[0]
    np.testing.assert_allclose(found, [1 - 0.1 * (2 / (2 + 0.5) + 0.2 * 1)], rtol=1e-6)
    assert DQN(optimizer="adamw", weight_decay=0.2).weight_decay == 0.2
    assert "weight_decay" not in (to_json(SAC()) or {})
    for method in (DQN, SAC):
        with pytest.raises(UserError, match="weight_decay is adamw's"):
            method(weight_decay=0.2)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("adamw", optax.adamw(1e-2, eps=1e-3)),
        ("rmsprop", optax.rmsprop(1e-2, eps=1e-3, eps_in_sqrt=False)),
        ("sgd", optax.sgd(1e-2)),
    ],
)
def test_all_others_are_optax_with_numbers_that_may_be_traced(name, theirs) -> None:
    weights = {"weight": jnp.linspace(-1, 1, 12).reshape(3, 4), "bias": jnp.zeros(3)}

    def slope(weights):
        return jax.tree.map(lambda w: jnp.cos(3 * w), weights)

    @jax.jit
    def ours(rate, floor, weights):
        optimizer = optimizer_for(name, rate, floor)
        memory = optimizer.init(weights)
        for _ in range(3):
            weights, memory = optimizer.step(weights, slope(weights), memory)
        return weights

    moved, memory = weights, theirs.init(weights)
    for _ in range(3):
        change, memory = theirs.update(slope(moved), memory, moved)
        moved = optax.apply_updates(moved, change)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), ours(1e-2, 1e-3, weights), moved)


def test_a_target_goes_part_of_the_way() -> None:
    np.testing.assert_allclose(move(jnp.array([0.0]), jnp.array([4.0]), 0.25), [1.0])
