"""Worlds that are pure functions: a whole episode, or many side by side, becomes one compiled program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from jax import Array


class Step(NamedTuple):
    """What one action led to."""

    state: Any  # a pytree
    observation: Array  # (*observation_shape,)
    reward: Array  # () float32
    terminal: Array  # () bool: the game is over, and the state must not be stepped again


class CompiledWorld(Protocol):
    """One copy of a world; `jax.vmap` makes several. It is hashable: compiled programs take it as a constant."""

    @property
    def name(self) -> str: ...
    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    @property
    def actions(self) -> int: ...

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A fresh state and its observation."""
        ...

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Carry out one action; all chance is in the key."""
        ...
