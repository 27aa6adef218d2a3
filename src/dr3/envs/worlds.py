"""Worlds by name, behind one interface: Gymnasium's, with observations in one array."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dr3.envs.atari import ATARI
from dr3.envs.drawers_tasks import DRAWERS
from dr3.envs.gridworld import GRIDWORLDS, is_gridworld, spelled_gridworld
from dr3.envs.mazes import MAZES
from dr3.envs.minatar import MINATAR
from dr3.envs.observing import flatten, limits
from dr3.envs.parts import Parts
from dr3.envs.screen import draw_without_screen
from dr3.envs.tasks import TASKS, find_task
from dr3.errors import UserError, nearest
from dr3.registry import Registry

if TYPE_CHECKING:
    import gymnasium

_ROBOTICS = ("antmaze/", "pointmaze/", "kitchen/", "AntMaze_", "PointMaze_", "FrankaKitchen-")


def make_world(name: str, *, render_mode: str | None = None) -> gymnasium.Env:
    """One of `WORLDS`, or a Gymnasium id, also with arguments: `FrankaKitchen-v1{"tasks_to_complete": ["kettle"]}`.
    A gridworld, with or without options (`grid16smoothobs:lava=0.1`), is made too: `dr3.envs.gridworld_gym`.

    Observations with parts are flattened (see `flatten`), or rows of bytes where a picture is among them (`Parts`), and
    floats are float32: what the data is read as. With
    render_mode="rgb_array" it can be drawn, as an array, also where there is no screen.

    Args:
        name: Its name.
        render_mode: "rgb_array" to draw it, or None.
    """
    if render_mode is not None:
        draw_without_screen()
    _import("gymnasium", name, "envs")
    register_robots(name)
    with warnings.catch_warnings():
        # That a newer version of a world exists is no news: the one that is named is the one the data came from.
        warnings.simplefilter("ignore")
        if is_gridworld(name):
            return _flat(_gridworld(name, render_mode))
        make = WORLDS[name] if name in WORLDS else partial(_of_gymnasium, name)
        return _flat(make(render_mode=render_mode))


def register_robots(name: str) -> None:
    """Have Gymnasium know the worlds of gymnasium-robotics, if the name is one of theirs."""
    if name.startswith(_ROBOTICS):
        with contextlib.redirect_stderr(io.StringIO()):  # it greets whoever imports it with news about other worlds
            _import("gymnasium", name, "envs").register_envs(_import("gymnasium_robotics", name, "robotics"))


def _maze(name: str, *, render_mode: str | None) -> gymnasium.Env:
    from dr3.envs.maze_worlds import POINT_LIMITS, maze_world

    task = find_task(name)
    return maze_world(name, POINT_LIMITS[name.partition("/")[2]] if task is None else task.limit, render_mode)


def _walk(*, render_mode: str | None) -> gymnasium.Env:
    _import("mujoco", "ant/waypoints", "mujoco")
    from dr3.envs.ant_walk import ant_walk

    return ant_walk(render_mode)


def _kitchen(name: str, *, render_mode: str | None) -> gymnasium.Env:
    from dr3.envs.kitchen import kitchen_world

    kind = name.removeprefix("kitchen/")
    return kitchen_world(kind, TASKS[f"kitchen-{kind}"].limit, render_mode)


def _of_gymnasium(name: str, *, render_mode: str | None) -> gymnasium.Env:
    import gymnasium

    if name.startswith("drawers/"):
        _import("mujoco", name, "mujoco")
        from dr3.envs.drawers import register_drawers

        register_drawers()
    identity, brace, arguments = name.partition("{")
    try:
        settings = json.loads(brace + arguments) if brace else {}
        if not isinstance(settings, dict):
            raise ValueError("no object")
        given: dict[str, Any] = {"disable_env_checker": True, "render_mode": render_mode, **settings}
        return gymnasium.make(identity, **given)
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        if not brace:
            raise
        raise UserError(
            f"The world {identity!r} cannot be made with what follows its name, {brace + arguments!r}: that must be a "
            f"JSON object of its arguments ({type(error).__name__}: {error})."
        ) from None
    except gymnasium.error.DependencyNotInstalled:
        raise UserError(f"{name} needs MuJoCo: pip install 'dr3[mujoco]'.") from None
    except (gymnasium.error.Error, ModuleNotFoundError) as error:  # the latter where the name holds a colon
        near = nearest(name, (*GRIDWORLDS, *MINATAR, *ATARI, *WORLDS, *DRAWERS, *gymnasium.registry), most=5)
        reason = str(error).splitlines()[0].rstrip(".")
        names = f"the nearest names: {', '.join(near)}" if near else "docs/worlds.md lists those there are"
        raise UserError(f"There is no world {name!r} ({reason}); {names}.") from None


def _gridworld(name: str, render_mode: str | None) -> gymnasium.Env:
    from dr3.envs.gridworld_gym import GridworldEnv

    if render_mode is not None:
        raise UserError(f"{name} cannot be drawn: a gridworld shows rows of numbers.")
    return GridworldEnv(spelled_gridworld(name))


def _ant_of_d4rl(*, render_mode: str | None) -> gymnasium.Env:
    """Ant with the 111 numbers of D4RL's files: the last 84, contact forces, were always zero in their simulator."""
    import gymnasium

    world = gymnasium.make(
        "Ant-v5",
        disable_env_checker=True,
        render_mode=render_mode,
        include_cfrc_ext_in_observation=False,
        contact_cost_weight=0,
    )
    space = gymnasium.spaces.Box(-np.inf, np.inf, (111,), np.float32)
    return gymnasium.wrappers.TransformObservation(world, lambda seen: np.append(seen, np.zeros(84)), space)


def _flat(world: gymnasium.Env) -> gymnasium.Env:
    import gymnasium

    parts = Parts.of(world.observation_space.sample())

    def flat(observation: Any) -> Any:
        if parts is not None:
            return parts.pack(observation)
        array = np.atleast_1d(flatten(observation))
        return array.astype(np.float32) if array.dtype.kind == "f" else array

    first = flat(world.observation_space.sample())
    space = gymnasium.spaces.Box(*limits(first.dtype), first.shape, first.dtype)
    made: Any = gymnasium.wrappers.TransformObservation(world, flat, space)
    made.parts = parts
    return made


def _import(module: str, name: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UserError(f"{name} needs {module.replace('_', '-')}: pip install 'dr3[{extra}]'.") from None


def _own(name: str) -> Any:
    family = name.partition("/")[0]
    whole = {"ant/d4rl": _ant_of_d4rl, "ant/waypoints": _walk}
    makers = {"antmaze": _maze, "pointmaze": _maze, "kitchen": _kitchen}
    return whole.get(name) or partial(makers.get(family, _of_gymnasium), name)


# Besides these, whatever Gymnasium can make.
_NAMES = (*(task.world for task in TASKS.values()), "Ant-v5", "ant/waypoints", *(f"pointmaze/{maze}" for maze in MAZES))
WORLDS = Registry("world", {name: _own(name) for name in _NAMES})
