"""What a learned policy does, whichever the method: actions, Q of all actions, probabilities, samples.

A method must have `act` and `values`. What it may have besides, it is asked for here and nowhere else:
`action_values(critic, observations)` where one pass gives Q of all actions, `probabilities(critic, observations)` or
`logits(critic, observations)`, their logarithm up to a constant, where it draws among discrete actions, and
`sample(critic, observations, noise)` where it draws continuous ones.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Shaped

from dr3.data.transitions import DiscreteActions
from dr3.methods.allowed import allowed_only, greedy
from dr3.methods.base import Spec


def decide(
    method: Any,
    critic: Any,
    spec: Spec,
    observations: Shaped[Array, " n *shape"],
    mask: Bool[Array, "n A"] | None = None,
) -> Shaped[Array, " n *action"]:
    """The policy's actions; of a mask (n, A) those that it allows, each row at least one."""
    if mask is None:
        return method.act(critic, observations)
    if hasattr(method, "logits"):  # not their exponentials: beside a forbidden action all others may be 0
        return greedy(method.logits(critic, observations), mask)
    if draws_among(method):  # its likeliest action, which is what such a method's `act` gives
        return jnp.argmax(jnp.where(mask, probabilities(method, critic, spec, observations), -1), axis=-1)
    return greedy(action_values(method, critic, spec, observations), mask)


def action_values(
    method: Any, critic: Any, spec: Spec, observations: Shaped[Array, " n *shape"]
) -> Float[Array, "n A"]:
    """Q of all actions, where they are discrete."""
    if hasattr(method, "action_values"):
        return method.action_values(critic, observations)
    assert isinstance(spec.action_space, DiscreteActions)
    rows = observations.shape[0]
    each = [method.values(critic, observations, jnp.full(rows, a, jnp.int32)) for a in range(spec.action_space.count)]
    return jnp.stack(each, axis=-1)


def probabilities(
    method: Any,
    critic: Any,
    spec: Spec,
    observations: Shaped[Array, " n *shape"],
    mask: Bool[Array, "n A"] | None = None,
) -> Float[Array, "n A"]:
    """π(a|s) of all actions, where they are discrete; of a greedy policy 1 and 0."""
    assert isinstance(spec.action_space, DiscreteActions)
    if not draws_among(method):
        best = decide(method, critic, spec, observations, mask)
        return (best[:, None] == jnp.arange(spec.action_space.count)).astype(jnp.float32)
    if hasattr(method, "logits"):
        return jax.nn.softmax(allowed_only(method.logits(critic, observations), mask))
    all_of_them = method.probabilities(critic, observations)
    if mask is None:
        return all_of_them
    allowed = jnp.where(mask, all_of_them, 0)
    return allowed / jnp.sum(allowed, axis=-1, keepdims=True)


def draw(
    shares: Float[Array, "n A"],
    uniform: Float[Array, " n"],
) -> Int[Array, " n"]:
    """Actions with these probabilities, given numbers that are uniform in [0, 1)."""
    return jnp.argmax((jnp.cumsum(shares, axis=-1) > uniform[:, None]).astype(jnp.int32), axis=-1)


def draws_among(method: Any) -> bool:
    """Whether the method's own policy draws among discrete actions, rather than taking the best."""
    return hasattr(method, "probabilities") or hasattr(method, "logits")
