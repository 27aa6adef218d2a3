"""The engine of one machine: worker processes, each with cores of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any, NamedTuple

from dr3.cores import available_cores
from dr3.files import open_to_append
from dr3.hyperparameters import seconds, whole_number
from dr3.plugins import carried
from dr3.sweeps.engine import Ended
from dr3.sweeps.work import LOG, python_path


class Local:
    """A worker process per core, or `workers` of them, which share the cores.

    A worker that dies (`kill -9`, out of memory) is replaced, and its task goes on from its last saved state, at most
    `retries` times. A state is saved every `save_every` seconds, by default as `dr3.train` does.
    """

    def __init__(self, workers: int | None = None, *, retries: int = 3, save_every: float | None = None) -> None:
        seconds("save_every", save_every)
        self.workers = None if workers is None else whole_number("workers", workers, 1)
        self.retries, self.save_every = whole_number("retries", retries, 0), save_every
        self.idle: list[_Worker] = []
        self.busy: dict[_Worker, _Order] = {}
        self.expect(1)

    def expect(self, tasks: int) -> None:
        cores = available_cores()
        self.size = self.workers or max(1, min(cores, tasks))
        self.cores_each = max(1, cores // self.size)

    def has_room(self) -> bool:
        return len(self.busy) < self.size

    def start(self, folder: Path) -> None:
        self._give(_Order(folder, 1))

    def ended(self, seconds: float) -> list[Ended]:
        answered = wait([worker.answers.fileno() for worker in self.busy], seconds)
        over = []
        for worker in [worker for worker in self.busy if worker.answers.fileno() in answered]:
            folder, attempt = self.busy.pop(worker)
            answer = worker.answers.readline()
            if answer:
                self.idle.append(worker)
                over.append(Ended(folder, json.loads(answer)["error"]))
                continue
            death = worker.bury()
            with open_to_append(folder / LOG) as log:
                log.write(f"--- attempt {attempt} of {self.retries + 1}: the worker {death}\n".encode())
            if attempt > self.retries:
                over.append(Ended(folder, f"its worker {death}, at attempt {attempt} of {self.retries + 1}"))
            else:
                self._give(_Order(folder, attempt + 1))
        return over

    def close(self) -> None:
        workers = [*self.idle, *self.busy]
        self.idle, self.busy = [], {}
        try:
            for worker in workers:
                worker.dismiss()
            for worker in workers:
                worker.bury()
        except KeyboardInterrupt:
            for worker in workers:
                worker.process.kill()
                worker.bury()
            raise

    def _give(self, order: _Order) -> None:
        log = order.folder / LOG
        worker = self.idle.pop() if self.idle else _Worker(self.cores_each, log)
        self.busy[worker] = order
        worker.order({"folder": str(order.folder), "save_every": self.save_every, "plugins": carried()})


class _Order(NamedTuple):
    folder: Path
    attempt: int


class _Worker:
    """One worker process, and the two pipes to it."""

    def __init__(self, cores: int, log: Path) -> None:
        # In a session of its own, so that Ctrl-C reaches the sweep alone, which then lets its workers save.
        with open_to_append(log) as errors:  # until its first task, when it opens the log itself
            self.process = subprocess.Popen(
                # -P: not with the current folder first on its path, where some data's numpy.py would be run.
                [sys.executable, "-P", "-m", "dr3.sweeps.worker", str(cores)],
                env=os.environ | {"PYTHONPATH": python_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.orders: IO[bytes] = self.process.stdin
        self.answers: IO[bytes] = self.process.stdout

    def order(self, order: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # it died while it was idle: that is noticed where answers are read
            self.orders.write(json.dumps(order).encode() + b"\n")
            self.orders.flush()

    def dismiss(self) -> None:
        """It saves what it is at and leaves."""
        with suppress(BrokenPipeError):  # an order that it did not live to read
            self.orders.close()

    def bury(self) -> str:
        """Wait for its end; how it ended."""
        code = self.process.wait()
        self.dismiss()
        self.answers.close()
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"
