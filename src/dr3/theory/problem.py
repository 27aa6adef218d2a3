"""What the theory is about: n Bellman updates of one network, as functions of a flat parameter vector."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from dr3.errors import UserError


def float64() -> Any:
    """Context in which the theory computes: `with float64(): …`. Nothing global is switched."""
    return jax.enable_x64(True)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["inputs", "next_inputs", "rewards", "discounts"],
    meta_fields=["q"],
)
@dataclass(frozen=True)
class TDProblem:
    """Q_i(θ) = Q_θ(s_i, a_i) and Q'_i(θ) = Q_θ(s'_i, a'_i) for a fixed batch, tied by r_i and γ_i.

    The network is seen row by row: its value at one input must not depend on the rest of the batch. The TD loss is
    *summed* over the batch, as in the paper; a mean over n rows is a sum with η / n.

    It is a pytree whose structure holds q: functions compiled for one problem serve every problem with the same q and
    shapes, so `dataclasses.replace` its arrays rather than calling `td_problem` anew for the next batch.
    """

    q: Callable[[Array, Any], Array]  # (θ (d,), inputs) -> (n,)
    inputs: Any  # pytree of arrays with leading axis n: (s_i, a_i)
    next_inputs: Any  # the same for (s'_i, a'_i)
    rewards: Array  # (n,)
    discounts: Array  # (n,) γ where s' bootstraps, 0 at terminals

    @property
    def size(self) -> int:
        """n."""
        return self.rewards.shape[0]

    def values(self, theta: Array) -> Array:
        """Q_i(θ): (n,)."""
        return self.q(theta, self.inputs)

    def next_values(self, theta: Array) -> Array:
        """Q'_i(θ): (n,)."""
        return self.q(theta, self.next_inputs)

    def row_value(self, theta: Array, row: Any) -> Array:
        """Q at one input (no leading axis): scalar."""
        return self.q(theta, jax.tree.map(lambda leaf: leaf[None], row))[0]

    def errors(self, theta: Array) -> Array:
        """Signed TD errors e_i = Q_i - (r_i + γ Q'_i), appendix C.1: (n,)."""
        return self.values(theta) - (self.rewards + self.discounts * self.next_values(theta))

    def settled_at(self, theta: Array) -> TDProblem:
        """The same problem with the rewards for which θ is an exact fixed point (every e_i = 0)."""
        rewards = self.values(theta) - self.discounts * self.next_values(theta)
        return replace(self, rewards=rewards)


def td_problem(
    q: Callable[[Any, Any], Array],
    params: Any,
    inputs: Any,
    next_inputs: Any,
    rewards: Any,
    gamma: float,
    *,
    bootstraps: Any = None,
) -> tuple[TDProblem, Array]:
    """The problem of any network and any batch, and its flat θ, all in float64.

    q: (params, inputs) -> (n,). params: any pytree of arrays. bootstraps: (n,) 0 at terminals; all ones unless given.

    Args:
        q: The network, (params, inputs) -> (n,).
        params: The network's parameters, a pytree.
        inputs: (s, a) by rows, (n, …).
        next_inputs: (s', a') by rows, (n, …).
        rewards: (n,).
        gamma: γ.
        bootstraps: 0 at terminals, (n,); None is 1 everywhere.
    """
    if jnp.zeros(()).dtype != jnp.float64:
        raise UserError("The theory needs double precision: call it inside `with dr3.theory.float64():`.")
    theta, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params))
    rewards = jnp.asarray(rewards, jnp.float64)
    if bootstraps is None:
        bootstraps = jnp.ones_like(rewards)
    problem = TDProblem(
        q=lambda flat, x: q(unravel(flat), x),
        inputs=jax.tree.map(_in_double, inputs),
        next_inputs=jax.tree.map(_in_double, next_inputs),
        rewards=rewards,
        discounts=gamma * jnp.asarray(bootstraps, jnp.float64),
    )
    shape = jax.eval_shape(problem.values, theta).shape
    if shape != rewards.shape:
        raise UserError(f"q must give one value per row: {rewards.shape} for these rewards, but it gave {shape}.")
    return problem, theta


def _in_double(leaf: Any) -> Array:
    """Floating inputs in double precision; integer ones (action indices) as they are."""
    array = jnp.asarray(leaf)
    return array.astype(jnp.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
