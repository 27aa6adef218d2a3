"""Episodes in Gymnasium worlds, several at a time: one call of the policy serves a step of all of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dr3.cores import available_cores
from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.envs.parts import Parts
from dr3.envs.worlds import make_world
from dr3.errors import UserError

if TYPE_CHECKING:
    import gymnasium

# The policy always sees so many rows, some of them idle: a matrix product of another size may round another way, and an
# episode in MuJoCo would end elsewhere.
COPIES = 16
ACTION_MASK = "action_mask"  # where Gymnasium's worlds (Taxi-v3) and others say which actions are allowed


@dataclass
class RunningEpisode:
    """What one episode came to."""

    seed: int
    total: float = 0.0  # plain sum of rewards
    discounted: float = 0.0
    length: int = 0
    success: bool | None = None  # None where the world does not say


@dataclass
class _Copy:
    """One copy of the world and the episode it is in; None when none is left for it."""

    world: gymnasium.Env
    episode: RunningEpisode | None = None
    observation: Any = None
    mask: Any = None  # which actions are allowed now; None where the world does not say

    def begin(self, episode: RunningEpisode | None) -> None:
        self.episode = episode
        if episode is not None:
            self.observation, info = self.world.reset(seed=episode.seed)
            self.mask = allowed_in(info)

    def step(self, action: Any, discount: float) -> bool:
        """Carry out an action; whether that ended the episode, by a terminal or a time-out."""
        assert self.episode is not None
        self.observation, reward, terminal, cut, info = self.world.step(action)
        self.mask = allowed_in(info)
        now = self.episode
        now.total += float(reward)
        now.discounted += discount**now.length * float(reward)
        now.length += 1
        if "success" in info:
            now.success = bool(now.success) or bool(info["success"])
        return terminal or cut


def play_side_by_side(
    name: str, act: Callable[..., NDArray[Any]], seeds: Sequence[int], discount: float
) -> list[RunningEpisode]:
    """One episode for each seed, in their order; each depends on its seed and the policy alone.

    `act` is given observations, and masks (n, A) beside them where the world says which actions are allowed, by
    Gymnasium's `info["action_mask"]`.

    MuJoCo lets go of Python's lock while it computes, so large bodies are stepped in threads, one for each core.
    """
    copies = [_Copy(world) for world in _worlds(name, min(COPIES, len(seeds)))]
    episodes = [RunningEpisode(seed) for seed in seeds]
    waiting = iter(episodes)
    for copy in copies:
        copy.begin(next(waiting))
    rows = np.repeat(np.asarray(copies[0].observation)[None], COPIES, axis=0)
    fit = fitting(copies[0].world)
    threads = min(available_cores(), len(copies)) if _threads_pay(copies[0].world) else 1
    with ThreadPoolExecutor(threads) as pool:
        step_all = map if threads == 1 else pool.map
        while going := [copy for copy in copies if copy.episode is not None]:
            for row, copy in enumerate(copies):
                rows[row] = copy.observation
            masks = _masks(copies)
            actions = fit(act(rows) if masks is None else act(rows, masks))
            work = [(copy, action) for copy, action in zip(copies, actions, strict=False) if copy.episode is not None]

            def step_share(first: int, work: Sequence[tuple[_Copy, Any]] = work) -> list[bool]:
                return [copy.step(action, discount) for copy, action in work[first::threads]]

            for first, ended in enumerate(step_all(step_share, range(threads))):
                for copy, over in zip(going[first::threads], ended, strict=True):
                    if over:
                        copy.begin(next(waiting, None))
    return episodes


def _masks(copies: Sequence[_Copy]) -> NDArray[np.bool_] | None:
    """(COPIES, A), everything allowed in rows that are idle; None where no world says."""
    said = [copy.mask for copy in copies if copy.mask is not None]
    if not said:
        return None
    masks = np.ones((COPIES, len(said[0])), np.bool_)
    for row, copy in enumerate(copies):
        if copy.mask is not None:
            masks[row] = copy.mask
    return masks


def allowed_in(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Which actions a Gymnasium world allows now; None where it does not say, or none at all: an episode's end."""
    mask = info.get(ACTION_MASK)
    return None if mask is None or not np.any(mask) else np.asarray(mask) > 0


class _Kept(threading.local):
    """Copies of worlds that were made: a kitchen takes half a second to build, and a run tries its policies in it many
    times. Each thread has its own, because a copy is in one episode at a time.
    """

    def __init__(self) -> None:
        self.copies: dict[str, list[gymnasium.Env]] = {}


_kept = _Kept()


def _worlds(name: str, count: int) -> list[gymnasium.Env]:
    copies = _kept.copies.setdefault(name, [])
    while len(copies) < count:
        copies.append(make_world(name))
    return copies[:count]


def parts_of_world(name: str) -> Parts | None:
    """The parts of a Gymnasium world's observations, where there are pictures among them."""
    return getattr(_worlds(name, 1)[0], "parts", None)


def actions_of(name: str) -> DiscreteActions | ContinuousActions:
    """What can be done in a Gymnasium world."""
    return world_actions(_worlds(name, 1)[0])


def world_actions(world: gymnasium.Env) -> DiscreteActions | ContinuousActions:
    space: Any = world.action_space
    if hasattr(space, "low"):
        return ContinuousActions(math.prod(space.shape), float(np.min(space.low)), float(np.max(space.high)))
    if hasattr(space, "n"):
        return DiscreteActions(int(space.n))
    raise UserError(f"Actions of the kind {space} cannot be learned here; integers and vectors of numbers can.")


def fitting(world: gymnasium.Env) -> Callable[[NDArray[Any]], Any]:
    """From the policy's numbers to the world's actions: inside the bounds of a box, integers of a discrete space."""
    space: Any = world.action_space
    if hasattr(space, "low"):
        return lambda actions: np.clip(actions, space.low, space.high).astype(space.dtype)
    return lambda actions: (actions + getattr(space, "start", 0)).tolist()


def _threads_pay(world: gymnasium.Env) -> bool:
    """Whether a step is mostly MuJoCo's: an ant's (14 degrees of freedom) is, a hopper's (6) is half Python's."""
    inner: Any = world.unwrapped
    inner = getattr(inner, "simulator", inner)
    model = getattr(getattr(inner, "ant_env", inner), "model", None)
    return getattr(model, "nv", 0) > 12
