from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.methods import DQN, SAC, Spec
from dr3.training import execution as threads
from dr3.training.execution import threads_for

VECTOR = Spec((16,), DiscreteActions(5))

# What a process has of XLA's threads once it has computed something, and what is left of the variable.
POOL = """
import os
from pathlib import Path
from dr3.training.execution import start_xla
start_xla(1)
start_xla(2)  # it has started: nothing happens
import jax.numpy as jnp
(jnp.ones((8, 8)) @ jnp.ones((8, 8))).block_until_ready()
names = [task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
print(names.count("tf_XLAEigen"), os.environ.get("NPROC"))
"""


@pytest.mark.parametrize(
    ("members", "method", "spec", "rows", "expected"),
    [
        (1, DQN(hidden=(64, 64), batch_size=32), VECTOR, 1000, 1),
        (3, DQN(hidden=(64, 64), batch_size=32), VECTOR, 1000, 3),
        (5, DQN(hidden=(64, 64), batch_size=32), VECTOR, 1000, 4),
        (1, DQN(hidden=(1024, 1024), batch_size=256), VECTOR, 1000, 4),
        (1, DQN(hidden=(128,), batch_size=32), Spec((10, 10, 4), DiscreteActions(6)), 1000, 1),
        (1, DQN(batch_size=32), Spec((84, 84, 4), DiscreteActions(6)), 1000, 4),
        # Every row in each update: as many rows as the table has.
        (1, DQN(hidden=(64, 64), batch_size=0), VECTOR, 256, 1),
        (1, DQN(hidden=(64, 64), batch_size=0), VECTOR, 10_000, 4),
        (1, SAC(), Spec((17,), ContinuousActions(6)), 1000, 4),
        # What cannot be trained at all is refused later, and needs threads until then.
        (0, DQN(hidden=(64, 64), batch_size=32), VECTOR, 1000, 1),
        (1, SAC(hidden=(8,), batch_size=8), VECTOR, 1000, 4),
    ],
)
def test_small_updates_have_a_thread_for_each_member_and_others_all_cores(
    members, method, spec, rows, expected, monkeypatch
):
    monkeypatch.setattr(threads, "available_cores", lambda: 4)
    assert threads_for(members, method, spec, rows) == expected


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux lists them")
@pytest.mark.parametrize("asked", [None, "3"])
def test_xla_starts_with_so_many_threads_unless_its_user_has_said_how_many(asked):
    environment = {key: value for key, value in os.environ.items() if key != "NPROC"}
    if asked is not None:
        environment["NPROC"] = asked
    command = [sys.executable, "-c", POOL]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert output.split() == [asked or "1", str(asked)]
