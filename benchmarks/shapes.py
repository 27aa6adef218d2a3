"""The networks that are timed, for every side alike, and how it is asked. Standard library only: peers import it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ACTIONS = 5
DISCOUNT = 0.99
LEARNING_RATE = 3e-4
TARGET_PERIOD = 100
COEFFICIENT = 0.03


@dataclass(frozen=True)
class Shape:
    """A network and its batch: convolutions (filters, kernel, stride) on images, then dense layers, then the head."""

    title: str
    observation: tuple[int, ...]
    dtype: str
    stages: tuple[tuple[int, int, int], ...]
    same_padding: bool
    hidden: tuple[int, ...]
    batch: int
    rows: int
    network: str = "auto"


SHAPES = {
    "mlp": Shape("(1024, 1024) MLP", (16,), "float32", (), False, (1024, 1024), 256, 10_000),
    "nature": Shape("Nature CNN", (84, 84, 4), "uint8", ((32, 8, 4), (64, 4, 2), (64, 3, 1)), True, (512,), 32, 2_000),
    # As d3rlpy's, whose convolutions do not pad: 3136 inputs to the dense layer, where padded ones leave 7744.
    "nature-valid": Shape(
        "Nature CNN, unpadded",
        (84, 84, 4),
        "uint8",
        ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
        False,
        (512,),
        32,
        2_000,
        network="nature-valid",
    ),
    "minatar": Shape("MinAtar CNN", (10, 10, 4), "bool", ((16, 3, 1),), False, (128,), 32, 10_000),
}

WITH_DR3 = tuple(name for name in SHAPES if name != "nature-valid")  # which is there for d3rlpy, and that has no DR3


@dataclass(frozen=True)
class Control:
    """Continuous control: twin critics and a policy, all with these dense layers, over encoders of pictures."""

    title: str
    observation: tuple[int, ...]
    actions: int
    hidden: tuple[int, ...]
    batch: int
    rows: int
    sampled_actions: int = 0  # of each kind, for CQL
    channels: tuple[int, ...] = ()  # of COG's strided encoder: one for both critics, one for the policy
    crop: int = 0


CONTROL = {
    "sac": Control("SAC, 2 x 256", (17,), 6, (256, 256), 256, 20_000),
    "cql": Control("CQL, 3 x 256, 10 actions", (17,), 6, (256, 256, 256), 256, 20_000, sampled_actions=10),
    "cog": Control(
        "COG, strided encoder", (48, 48, 3), 8, (128, 128), 64, 5_000, sampled_actions=1, channels=(16, 32), crop=2
    ),
}
WITH_PICTURES = tuple(name for name, sizes in CONTROL.items() if sizes.channels)  # d3rlpy has nothing like it

Run = Callable[[int], None]  # does that much work for every member, and returns when it is done


def serve(build: Callable[[Any, str, int], Run]) -> None:
    """Answer questions on standard input, a line each, with the seconds they took (of the clock and of the
    processor) on standard output.

    `build(shape, work, members)` is called once per kind of question; the first answer holds whatever it compiles, and
    is the asker's to throw away. Works are "q" (the base method), "cql" (discrete CQL), "q+dr3", "q+dr3-stop" (no
    gradient into phi'), "q+label-noise", and the remedies "q+layer-norm", "q+dr3+beer", "q+clip" and "q+hl-gauss".
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    runs: dict[tuple[str, str, int], Run] = {}
    for line in sys.stdin:
        ask = json.loads(line)
        kind = (ask["shape"], ask["work"], ask["members"])
        if kind not in runs:
            runs[kind] = build({**SHAPES, **CONTROL}[ask["shape"]], ask["work"], ask["members"])
        # Half as much first, not timed: it takes a system tenths of a second to spread a woken process's threads.
        runs[kind](-(-ask["times"] // 2))
        start = time.perf_counter(), time.process_time()
        runs[kind](ask["times"])
        took = {"wall": time.perf_counter() - start[0], "cpu": time.process_time() - start[1]}
        answers.write(json.dumps(took) + "\n")
        answers.flush()
