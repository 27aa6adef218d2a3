"""MinAtar (Young and Tian, 2019): five Atari games on a 10 x 10 board, compiled.

The games are pgx's (`pip install 'dr3[minatar]'`). They keep MinAtar's rules, so they are under the GPL as MinAtar is,
and nothing of them is in this package: they are imported when a game is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from dr3.envs.compiled import Step
from dr3.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from jax import Array

MINATAR = tuple(f"minatar/{game}" for game in ("asterix", "breakout", "freeway", "seaquest", "space_invaders"))


@dataclass(frozen=True)
class MinAtar:
    """One game, by its name in `MINATAR`, with MinAtar's defaults.

    - Observations are booleans (10, 10, channels), one channel for each kind of thing on the board.
    - The minimal action set: only actions that do something in this game (6 in Seaquest, 3 in Breakout).
    - Sticky actions: with probability 0.1 the last action is carried out instead of the one asked for.
    - Difficulty ramping is on. Freeway ends after 2,500 steps, which MinAtar reports as a terminal.
    """

    name: str

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return _game(self.name)[1]

    @property
    def actions(self) -> int:
        return _game(self.name)[2]

    def reset(self, key: Array) -> tuple[Any, Array]:
        state = _game(self.name)[0].init(key)
        return state, state.observation

    def step(self, state: Any, action: Array, key: Array) -> Step:
        state = _game(self.name)[0].step(state, action, key)
        return Step(state, state.observation, state.rewards[0].astype("float32"), state.terminated)


def minatar(name: str) -> MinAtar:
    """The game with a name of `MINATAR`, or a sentence that says which there are or what to install.

    Args:
        name: The name.
    """
    if name not in MINATAR:
        raise UserError(f"There is no game {name!r}; there are {', '.join(MINATAR)}{did_you_mean(name, MINATAR)}")
    _game(name)
    return MinAtar(name)


@cache
def _game(name: str) -> tuple[Any, tuple[int, ...], int]:
    """pgx's game with its observation shape and number of actions, which it finds out only by resetting."""
    import jax

    try:
        pgx = import_module("pgx")
    except ImportError:
        raise UserError(f"{name} needs pgx (its games are under the GPL): pip install 'dr3[minatar]'.") from None
    game = pgx.make(cast(Any, "minatar-" + name.removeprefix("minatar/")))
    state = jax.eval_shape(game.init, jax.random.key(0))
    return game, tuple(state.observation.shape), state.legal_action_mask.shape[0]
