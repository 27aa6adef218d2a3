"""Optax for Equinox modules: the two steps every method takes, typed for any pytree."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, cast

import optax
from jax import Array
from jax.typing import ArrayLike

T = TypeVar("T")


class Adam(NamedTuple):
    """Adam with a step size and ε that may be traced numbers."""

    learning_rate: ArrayLike
    epsilon: ArrayLike = 1e-8

    def init(self, parameters: Any) -> optax.OptState:
        return self._transformation.init(parameters)

    def step(self, parameters: T, gradient: T, memory: optax.OptState) -> tuple[T, optax.OptState]:
        change, memory = self._transformation.update(cast(Any, gradient), memory)
        return cast(T, optax.apply_updates(cast(Any, parameters), change)), memory

    @property
    def _transformation(self) -> optax.GradientTransformation:
        return optax.adam(cast(Array, self.learning_rate), eps=cast(Array, self.epsilon))


def move(target: T, towards: T, rate: ArrayLike) -> T:
    """target + rate (towards - target), leaf by leaf: rate 1 copies, a small rate trails (Polyak)."""
    return cast(T, optax.incremental_update(cast(Any, towards), cast(Any, target), cast(Array, rate)))
