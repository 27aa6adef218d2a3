"""`dr3 play`: an episode of a policy as a moving picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dr3.envs import ATARI, MINATAR, is_gridworld, make_world
from dr3.envs.screen import drawing
from dr3.errors import UserError
from dr3.files import check_file
from dr3.hyperparameters import within
from dr3.seeds import check_seed

if TYPE_CHECKING:
    import gymnasium
    from PIL.Image import Image

Act = Callable[[NDArray[Any], Any], Any]  # from one observation, and what is allowed there if known, to an action
LONGEST = 1_000  # steps: some worlds have no end, and a film is in memory until it is written


@dataclass(frozen=True)
class Film:
    """What one episode looked like, and what it brought."""

    frames: list[Image]  # as `quantized`: the start, then one for every so many steps
    frames_per_second: float
    total: float  # plain sum of rewards
    over: bool  # not where the episode went on after its `LONGEST` steps
    steps: int


def film(world: str, policy: str = "random", *, seed: int = 0, every: int = 1) -> Film:
    """One episode, or its `LONGEST` first steps, in a world of `make_world` that can be drawn.

    `policy` is "random", "scripted" (in the drawers and the kitchen: the whole way, with the scripts' noise) or a
    learned one, as `RUN@STEP` or `RUN@STEP:MEMBER`, or `RUN`: what was selected there, else the last checkpoint of its
    first member; or the .npz file that an online SAC's policy was kept in. In a maze "scripted" is the shortest way to
    the goal, without noise. One picture of every so many steps is kept.
    """
    check_seed(seed)
    within("every", every, 1)
    _check_pillow()
    undrawn = is_gridworld(world) or world in (*MINATAR, *ATARI)
    env = None if undrawn else make_world(world, render_mode="rgb_array")
    if env is None or "rgb_array" not in env.metadata.get("render_modes", ()):
        raise UserError(f"{world} cannot be drawn; mazes, the kitchen, the drawers and most Gymnasium worlds can.")
    from gymnasium.error import DependencyNotInstalled

    try:
        observation, info = env.reset(seed=seed)
        with drawing() if "mujoco" in sys.modules else nullcontext():
            frames = [quantized(env.render())]
    except DependencyNotInstalled as error:
        raise UserError(f"{world} cannot be drawn: {error}.") from None
    from dr3.training.side_by_side import allowed_in

    act = _policy(policy, world, env, seed)
    total, over, steps = 0.0, False, 0
    while not over and steps < LONGEST:
        observation, reward, terminal, cut, info = env.step(act(observation, allowed_in(info)))
        steps += 1
        total, over = total + float(reward), bool(terminal or cut)
        if steps % every == 0 or over:
            frames.append(quantized(env.render()))
    speed = float(env.metadata.get("render_fps", 10)) / every
    env.close()
    return Film(frames, speed, total, over, steps)


def check_gif(path: str | Path) -> None:
    """Refuse a file that no moving picture can be written to."""
    _check_pillow()
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise UserError(f"{path}: a moving picture is written as .gif; give the file that ending.")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder it should be written to does not exist.")
    check_file(path)


def _check_pillow() -> None:
    if find_spec("PIL") is None:
        raise UserError("Writing a GIF needs pillow: pip install 'dr3[mujoco]'.")


def quantized(frame: Any) -> Image:
    """A picture (height, width, 3) in 64 colours: a third of the memory, and what a GIF keeps of it."""
    from PIL import Image

    return Image.fromarray(np.asarray(frame, np.uint8)).quantize(64)


def write_gif(path: str | Path, frames: Sequence[Image], frames_per_second: float) -> None:
    """The last frame stays for a second."""
    check_gif(path)
    first, *rest = frames
    pause = max(20, round(1000 / frames_per_second))  # what is shorter, viewers show slowly
    first.save(path, save_all=True, append_images=rest, duration=[pause] * len(rest) + [1000], loop=0)


def _policy(policy: str, world: str, env: gymnasium.Env, seed: int) -> Act:
    if policy == "random":
        env.action_space.seed(seed)
        space: Any = env.action_space
        return lambda observation, mask: space.sample() if mask is None else space.sample(mask=mask.astype(np.int8))
    if policy == "scripted":
        return _scripted(world, env, seed)
    from dr3.runs import Runs
    from dr3.training.evaluation import Policy
    from dr3.training.side_by_side import COPIES, fitting, world_actions
    from dr3.training.start import Start

    if Path(policy).is_file():
        return _of_file(Path(policy), env)
    if "@" not in policy:
        if not Path(policy).is_dir():
            learned_ones = "what a run has learned, as RUN, RUN@STEP or RUN@STEP:MEMBER"
            raise UserError(f"There is no policy {policy!r}; there are random, scripted, and {learned_ones}.")
        member, step = Runs(policy).place()
        policy = f"{policy}@{step}:{member}"
    start = Start.read(policy)
    runs = Runs(start.run)
    learned = Policy(runs.members[start.member].method, start.critic, runs.spec)
    learned.check_actions(world_actions(env))
    learned.check_parts(getattr(env, "parts", None))
    fit = fitting(env)

    # As many rows as an evaluation gives it, of which one counts: so it acts to the last bit as it did there.
    def acting(observation: NDArray[Any], mask: NDArray[np.bool_] | None) -> Any:
        rows = np.repeat(np.asarray(observation)[None], COPIES, axis=0)
        return fit(learned(rows) if mask is None else learned(rows, np.repeat(mask[None], COPIES, axis=0)))[0]

    return acting


def _of_file(path: Path, env: Any) -> Act:
    from dr3.collect.host_policy import read_policy

    learned = read_policy(path)
    observed, acted = env.observation_space.shape, env.action_space.shape
    if ((learned.observed,), (learned.size,)) != (observed, acted):
        raise UserError(
            f"{path} maps {learned.observed} numbers to {learned.size}; this world has observations of the shape "
            f"{observed} and actions of the shape {acted}."
        )
    return lambda observation, mask: learned.mode(observation)


def _scripted(world: str, env: Any, seed: int) -> Act:
    random = np.random.default_rng(seed)
    if world.startswith("kitchen/"):
        from dr3.collect import kitchen_skills

        solved = kitchen_skills.solve(env.unwrapped, random)
        return lambda observation, mask: kitchen_skills.act(solved, random)
    if "maze/" in world:
        from dr3.collect.waypoints import to_the_goal

        follower = to_the_goal(env.unwrapped)
        return lambda observation, mask: follower(observation)
    if not world.startswith("drawers/"):
        raise UserError(f"There is no scripted policy for {world}; there are for the drawers, the kitchen and mazes.")
    from dr3.collect.drawers_policies import act
    from dr3.collect.drawers_skills import solve

    script = solve(env.unwrapped.task.name, env.unwrapped.scene, random)
    return lambda observation, mask: act(script, random)
