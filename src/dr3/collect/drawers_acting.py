"""Acting scripted episodes in front of the drawers: the work of one process, which needs no JAX."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.collect.drawers_policies import noisy
from dr3.collect.drawers_skills import GRASP, PRIOR, Skill
from dr3.envs.drawers import DrawersEnv, Observation
from dr3.files import written_whole

KINDS = ("prior", "task")


@dataclass(frozen=True)
class EpisodePart:
    """Some episodes of one file, by number."""

    task: str
    kind: str
    observation: Observation
    seed: int
    steps: int
    first: int
    count: int
    path: Path


def skills_of(task: str, kind: str) -> tuple[Skill, ...]:
    """Those that a file is made of; episode n is of the skill n modulo their number."""
    return PRIOR[task] if kind == "prior" else (GRASP,)


def act_part(part: EpisodePart) -> EpisodePart:
    """Act a part's episodes and write them; whole or not at all."""
    skills = skills_of(part.task, part.kind)
    worlds = {skill.start: DrawersEnv(skill.start, observation=part.observation) for skill in skills}
    acted = []
    for number in range(part.first, part.first + part.count):
        skill = skills[number % len(skills)]
        stream = np.random.SeedSequence((part.seed, KINDS.index(part.kind), number))
        acted.append(_act_episode(worlds[skill.start], skill, part.steps, stream))
    for world in worlds.values():
        world.close()
    columns: dict[str, Any] = {name: np.concatenate([episode[name] for episode in acted]) for name in acted[0]}
    with written_whole(part.path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **columns)
    return part


def _act_episode(
    world: DrawersEnv, skill: Skill, steps: int, stream: np.random.SeedSequence
) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(stream)
    observation, _ = world.reset(seed=int(stream.generate_state(1)[0]))
    frames, actions, rewards, infos = [observation], [], [], []
    # It ends with its script. An arm that waits where the next episode starts would teach to wait there.
    for wanted in islice(skill.script(world.scene, random), steps):
        actions.append(noisy(wanted, random))
        observation, reward, _, _, info = world.step(actions[-1])
        frames.append(observation)
        rewards.append(reward)
        infos.append(info)
    return {
        "frames": np.stack(frames),
        "actions": np.stack(actions),
        "rewards": np.array(rewards, np.float32),
        "lengths": np.array([len(actions)]),
        "succeeded": np.array([skill.succeeded(infos)]),
    }
