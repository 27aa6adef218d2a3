"""A side of the comparison: processes pinned to cores that answer how long work takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
FEWEST = 8  # a call has a cost of its own; fewer updates would measure that

# glibc then keeps large blocks that are freed, in the place of giving them back to the system and taking them again.
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)}


class Process:
    """One process on some cores, with as many threads as it has cores."""

    def __init__(self, command: Sequence[str], cores: Sequence[int], log: Path, settings: Mapping[str, str]) -> None:
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(len(cores)), **settings}
        with log.open("a") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),  # before any library counts the cores
            )
        self.log = log

    def ask(self, shape: str, work: str, members: int, times: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"shape": shape, "work": work, "members": members, "times": times}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"A side of the benchmark stopped; see {self.log}.")
        return json.loads(line)


class Side:
    """dr3 runs the members of a population itself, each network and size of population in a process of its own, as
    `dr3 train` does. For a peer members are spread over one process per core.
    """

    def __init__(
        self,
        name: str,
        python: str | None,
        script: Path,
        cores: Sequence[int],
        logs: Path,
        *arguments: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.cores, self.spreads, self.settings = name, cores, python is not None, settings or {}
        self.command = [python or sys.executable, "-u", str(script), *arguments]
        self.log = logs / f"{name}.log"
        self.processes: dict[tuple[str, int], list[Process]] = {}  # for which network and how many members -> they

    def ask(self, shape: str, work: str, members: int, times: int, clock: str = "wall") -> float:
        """Seconds until all members have done it, each `times` times; with clock "cpu", the busiest process's own."""
        processes = self._for(shape, members)
        for number, process in enumerate(processes):
            process.ask(shape, work, len(range(number, members, len(processes))), times)
        return max(process.answer()[clock] for process in processes)

    def calibrate(self, shape: str, work: str, members: int, seconds: float) -> int:
        """How many times fill about that many seconds; everything is compiled and warm after this."""
        self.ask(shape, work, members, 2)
        once = self.ask(shape, work, members, 4) / 4
        return max(FEWEST, round(seconds / once))

    def close(self) -> None:
        for process in (process for group in self.processes.values() for process in group):
            process.process.communicate()

    def _for(self, shape: str, members: int) -> list[Process]:
        key = (shape, members)
        if key not in self.processes:
            count = min(members, len(self.cores)) if self.spreads else 1
            shares = [self.cores[number::count] for number in range(count)]
            self.processes[key] = [Process(self.command, share, self.log, self.settings) for share in shares]
        return self.processes[key]


def versions(python: str | None, *packages: str) -> dict[str, str]:
    """What an environment holds."""
    code = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    output = subprocess.run(
        [python or sys.executable, "-c", code, *packages], check=True, capture_output=True, text=True
    )
    return json.loads(output.stdout)
