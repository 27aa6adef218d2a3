"""The run folder: what a run leaves on disk, and how it survives being killed."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from dr3.errors import UserError
from dr3.files import clear_unfinished, for_json, read_lines, write_text
from dr3.runs.checkpoints import Checkpoints

PACKAGES = ("dr3", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


class RunFolder:
    """Names and formats of everything in a run folder.

    Lines are on the disk before the state that covers them, so after any kill the files hold at least what the newest
    whole state knows; `rewind` removes what they hold beyond it, and a torn last line with it. What a disk damages
    later is noticed too: a state counts only where what it covers is whole.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.environment = self.path / "environment.json"
        self.status = self.path / "status.json"
        self.metrics = self.path / "metrics.jsonl"
        self.evaluations = self.path / "evaluations.jsonl"
        self.results = self.path / "results.jsonl"  # the same returns, as `dr3 stats` reads them
        self.checkpoints = Checkpoints(self.path / "checkpoints")  # critics, for acting and diagnosing: all are kept
        self.state = Checkpoints(self.path / "state")  # whole learners, for resuming: the last two are kept

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the folder against a second writer. The operating system lets go of it when the process ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path} cannot be a run folder: {error.strerror}.") from None
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{self.path} is in use by another process; wait, or choose another folder.") from None
            yield

    def append(self, file: Path, rows: Iterable[dict[str, Any]]) -> None:
        """Add lines and see them to the disk. A number that is not finite becomes null: JSON knows no NaN."""
        with file.open("a") as stream:
            for row in rows:
                stream.write(json.dumps(for_json(row)) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def rewind(self, step: int) -> None:
        """Drop every line and checkpoint written after `step`, and what is half-written: a last line, a file."""
        for file in (self.config, self.environment, self.status, self.metrics, self.evaluations, self.results):
            clear_unfinished(self.path, file.name)
        for file in (self.metrics, self.evaluations):
            kept = [json.dumps(row) + "\n" for row in read_lines(file) if row["step"] <= step]
            write_text(file, "".join(kept))
        self.checkpoints.rewind(step)
        self.state.rewind(step)

    def torn(self, file: Path, step: int, members: Iterable[int]) -> bool:
        """Whether a line is missing that was written at `step`, for one of these members."""
        there = {row["member"] for row in read_lines(file) if row["step"] == step}
        return file.exists() and not there.issuperset(members)


def describe_environment() -> dict[str, Any]:
    """Versions, commit and hardware."""
    import jax

    return {
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "commit": _commit(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
    }


@cache
def _commit() -> str | None:
    """The commit of the source tree this package runs from, `+` if it was changed since; None for an installed one."""
    here = Path(__file__).parent
    try:
        # An installed package may lie inside somebody else's repository, which does not know this file.
        subprocess.run(["git", "ls-files", "--error-unmatch", __file__], cwd=here, capture_output=True, check=True)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        changes = subprocess.run(["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
