"""The engine of a cluster: every task is a Ray task, and Ray finds it a node."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import chdir, contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

from dr3.compiled_programs import replace_torn_programs
from dr3.cores import claim_cores
from dr3.errors import UserError
from dr3.hyperparameters import seconds, whole_number
from dr3.plugins import carried, take_up
from dr3.sweeps.engine import Ended
from dr3.sweeps.work import python_path, work


class OnRay:
    """Tasks on a Ray cluster: `address` as `ray.init` takes it, None for the one of this machine, or a new one.

    Each task has `cpus` cores and `gpus` GPUs (which may be a part of one) to itself. A task whose worker or node is
    lost is started elsewhere and goes on from its last saved state, at most `retries` times; hence the out folder must
    be on storage that all nodes see.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        cpus: int = 1,
        gpus: float = 0.0,
        retries: int = 3,
        save_every: float | None = None,
    ) -> None:
        if not isinstance(address, str | None):
            raise UserError(f"address must be a text, as ray.init takes it, or None, not {address!r}.")
        if not isinstance(gpus, Real) or isinstance(gpus, bool):
            raise UserError(f"gpus must be a number, not {gpus!r}.")
        if (cpus := whole_number("cpus", cpus)) < 1 or not 0 <= gpus < math.inf:
            raise UserError(f"A task needs at least 1 cpu and no fewer than 0 gpus, not {cpus} and {gpus:g}.")
        self.address, self.cpus, self.gpus = address, cpus, gpus
        seconds("save_every", save_every)
        self.retries, self.save_every = whole_number("retries", retries, 0), save_every
        self.running: dict[Any, Path] = {}
        self.ray: Any = None

    def expect(self, tasks: int) -> None:
        pass

    def has_room(self) -> bool:
        return True  # Ray keeps those that wait, and may add nodes for them

    def start(self, folder: Path) -> None:
        if self.ray is None:
            self.ray = _connected(self.address)
            # A worker for each task: what JAX took, a GPU's memory above all, is given back when the process ends.
            needs = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": self.retries, "max_calls": 1}
            self.remote = self.ray.remote(**needs)(_on_node)
        task = self.remote.remote(str(folder.absolute()), os.getcwd(), self.cpus, self.save_every, carried())
        self.running[task] = folder

    def ended(self, seconds: float) -> list[Ended]:
        over, _ = self.ray.wait(list(self.running), timeout=seconds)
        return [Ended(self.running.pop(task), self._error(task)) for task in over]

    def close(self) -> None:
        if self.ray is None:
            return
        tasks, self.running = list(self.running), {}
        for task in tasks:
            self.ray.cancel(task)  # a KeyboardInterrupt where it runs, upon which training saves and stops
        if tasks:
            self.ray.wait(tasks, num_returns=len(tasks))
        self.ray.shutdown()
        self.ray = None

    def _error(self, task: Any) -> str | None:
        try:
            return self.ray.get(task)
        except self.ray.exceptions.RayError as lost:
            return f"Ray gave it up after {self.retries} retries: {str(lost).splitlines()[0]}"


def _on_node(
    folder: str, directory: str, cpus: int, save_every: float | None, plugins: dict[str, list[str]]
) -> str | None:
    """What a Ray worker does. Files that are named relative to where the sweep was started are looked for there."""
    import ray

    claim_cores(cpus)
    replace_torn_programs()
    if Path(directory).is_dir():
        os.chdir(directory)
    take_up(plugins)
    return work(Path(folder), save_every=save_every, where=f"(Ray node {ray.get_runtime_context().get_node_id()})")


def _connected(address: str | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise UserError("The engine ray needs Ray: pip install 'dr3[ray]'.") from None
    environment = _environment()
    try:
        # Ray has its workers look for modules where the driver is at this moment: not among somebody's data.
        with chdir(Path(__file__).parents[2]), _own_signals():
            ray.init(address, log_to_driver=False, runtime_env={"env_vars": environment})
    except (ConnectionError, ValueError) as error:  # nobody answers there, or it is no address
        reason = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"There is no Ray cluster at {address} ({reason}); start one with: ray start --head.") from None
    except SystemExit:  # Ray's own answer to SIGTERM, as long as it starts
        print("Stopped while Ray was starting: nothing had begun.", file=sys.stderr, flush=True)
        raise SystemExit(128 + signal.SIGTERM) from None
    except Exception as error:  # a machine that is too busy, a port that is taken: Ray has no class of its own for it
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UserError(f"Ray did not start here ({reason}); try again, or use --engine local.") from None
    return ray


@contextmanager
def _own_signals() -> Generator[None]:
    """Ray takes SIGTERM for itself, and would leave at once; a sweep lets its workers save first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _environment() -> dict[str, str]:
    """JAX's and dr3's own settings as they are here, and where the sources are."""
    chosen = {key: value for key, value in os.environ.items() if key.startswith(("JAX_", "XLA_", "DR3_"))}
    return chosen | {"PYTHONPATH": python_path()}
