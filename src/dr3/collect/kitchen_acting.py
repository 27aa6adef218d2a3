"""Acting scripted demonstrations in the kitchen: the work of one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect.kitchen_arm import Arm
from dr3.collect.kitchen_skills import DEMONSTRATIONS, SKILLS, act, do, order
from dr3.envs import make_world
from dr3.envs.kitchen import Demonstrations
from dr3.files import written_whole


@dataclass(frozen=True)
class Part:
    """Some demonstrations, by number."""

    kind: Demonstrations
    seed: int
    first: int
    count: int
    path: Path


def act_part(part: Part) -> Part:
    """Act a part's demonstrations and write them; whole or not at all."""
    world = make_world(f"kitchen/{part.kind}")
    acted = []
    for number in range(part.first, part.first + part.count):
        stream = np.random.SeedSequence((part.seed, DEMONSTRATIONS.index(part.kind), number))
        acted.append(demonstrate(world, part.kind, stream))
    world.close()
    columns: dict[str, Any] = {name: np.concatenate([one[name] for one in acted]) for name in acted[0]}
    with written_whole(part.path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **columns)
    return part


def demonstrate(world: Any, kind: Demonstrations, stream: np.random.SeedSequence) -> dict[str, NDArray[Any]]:
    """One demonstration. It is over with the world's last task (a terminal), with its script or at the limit (cuts).

    `tried` and `done`, of shape (1, things), say what became of each of `SKILLS`.
    """
    random = np.random.default_rng(stream)
    seen, _ = world.reset(seed=int(stream.generate_state(1)[0]))
    kitchen = world.unwrapped
    tried: list[str] = []
    script = do(Arm(kitchen), order(kind, random), random, tried)
    steps = []
    terminal = cut = False
    while not (terminal or cut) and (action := act(script, random)) is not None:
        after, reward, terminal, cut, _ = world.step(action)
        steps.append((seen, action, reward, after, terminal))
        seen = after
    now, actions, rewards, following, terminals = (np.array(column) for column in zip(*steps, strict=True))
    timeouts = np.zeros(len(steps), np.bool_)
    timeouts[-1] = not terminals[-1]
    return {
        "observations": now,
        "actions": actions,
        "rewards": rewards.astype(np.float32),
        "next_observations": following,
        "terminals": terminals,
        "timeouts": timeouts,
        "tried": np.array([[task in tried for task in SKILLS]]),
        "done": np.array([[task in tried and kitchen.done(task) for task in SKILLS]]),
    }
