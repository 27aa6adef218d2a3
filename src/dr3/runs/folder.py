"""The run folder: what a run leaves on disk, and how it survives being killed."""

from __future__ import annotations

import hashlib
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

from filelock import FileLock, Timeout

from dr3.errors import UserError
from dr3.files import (
    check_name,
    clear_unfinished,
    for_json,
    open_regular,
    open_to_append,
    read_lines,
    refuse_link,
    write_text,
)
from dr3.runs.checkpoints import Checkpoints

PACKAGES = ("dr3", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


class RunFolder:
    """Names and formats of everything in a run folder.

    Lines are on the disk before the state that covers them, so after any kill the files hold at least what the newest
    whole state knows; `rewind` removes what they hold beyond it, and a torn last line with it. What is damaged later is
    noticed too: a state holds the length and a checksum of the lines before it, and counts only where they are whole.
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
        self._written: dict[str, Written] = {}  # of each file of lines, as this process has left it

    @contextmanager
    def locked(self, patience: float = 0.0) -> Generator[None]:
        """Hold the folder against a second writer, which gets `patience` seconds to end; a killed one holds nothing."""
        check_name(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path} cannot be a run folder: {error.strerror}.") from None
        # A folder may come from a stranger, and a link in it lead to a file of one's own.
        for file in (self.path / ".lock", *self._files(), self.checkpoints.folder, self.state.folder):
            refuse_link(file)
        lock = FileLock(self.path / ".lock", timeout=patience)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(f"{self.path} is in use by another process; wait, or choose another folder.") from None
        try:
            yield
        finally:
            lock.release()

    def append(self, file: Path, rows: Iterable[dict[str, Any]]) -> None:
        """Add lines and see them to the disk. A number that is not finite becomes null: JSON knows no NaN."""
        content = "".join(json.dumps(for_json(row)) + "\n" for row in rows).encode()
        with open_to_append(file) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        self._written.setdefault(file.name, Written()).add(content)

    def written(self) -> dict[str, Any]:
        """Of each file of lines, the length and the checksum: what a state is saved with."""
        return {name: [one.size, one.sum.hexdigest()] for name, one in self._written.items()}

    def rewind(self, step: int, seen: dict[str, tuple[int, str]] | None = None) -> None:
        """Drop every line and checkpoint written after `step`, and what is half-written: a last line, a file.

        `seen` is what the state of that step knows of the lines; one of an older version knows nothing.
        """
        for file in self._files():
            clear_unfinished(self.path, file.name)
        self.checkpoints.rewind(step)
        self.state.rewind(step)
        for file in (self.metrics, self.evaluations):
            if step < 0:
                kept = b""
            elif seen is not None:
                kept = _content(file)[: seen.get(file.name, (0, ""))[0]]
            else:
                kept = "".join(json.dumps(row) + "\n" for row in _rows(file) if row["step"] <= step).encode()
            write_text(file, kept.decode())
            self._written[file.name] = Written()
            self._written[file.name].add(kept)

    def damaged_lines(self, step: int) -> Path | None:
        """The file whose lines are not those that were there when the state of `step` was saved, if one is not."""
        seen = self.seen_by_state(step) or {}
        for file in (self.metrics, self.evaluations):
            size, checksum = seen.get(file.name, (0, ""))
            if size and Written().add(_content(file)[:size]) != (size, checksum):
                return file
        return None

    def seen_by_state(self, step: int) -> dict[str, tuple[int, str]] | None:
        """The length and the checksum of each file of lines when the state was saved; older versions kept none."""
        note = self.state.note(step)
        try:
            return None if note is None else {str(name): (int(size), str(sum_)) for name, (size, sum_) in note.items()}
        except (AttributeError, TypeError, ValueError):
            return None

    def lines(self, file: Path) -> list[dict[str, Any]]:
        """The rows of a file of lines, refused where they are not those that the newest state has seen."""
        newest = next(reversed(self.state.steps()), None)
        if newest is not None and self.damaged_lines(newest) == file:
            raise UserError(self.advice(file, newest))
        return read_lines(file)

    def advice(self, file: Path, step: int) -> str:
        """What to do about lines that are damaged."""
        what = "is missing" if not file.exists() else "is damaged"
        return (
            f"{file} {what}: it does not hold what was there at step {step:,}; training with the same command mends "
            f"what a state before that still covers, or else put back a copy, or remove {self.state.folder} and train "
            "again from the start, to the same end."
        )

    def _files(self) -> list[Path]:
        return [self.config, self.environment, self.status, self.metrics, self.evaluations, self.results]

    def torn(self, file: Path, step: int, members: Iterable[int]) -> bool:
        """Whether a line is missing that was written at `step`, for one of these members."""
        there = {row["member"] for row in _rows(file) if row["step"] == step}
        return file.exists() and not there.issuperset(members)


class Written:
    """How long a file is, and the checksum of what is in it."""

    def __init__(self) -> None:
        self.size, self.sum = 0, hashlib.sha256()

    def add(self, content: bytes) -> tuple[int, str]:
        self.size += len(content)
        self.sum.update(content)
        return self.size, self.sum.hexdigest()


def _rows(file: Path) -> list[dict[str, Any]]:
    """Lines that no checksum has told to be whole: each has a step and a member at least."""
    rows = read_lines(file)
    for number, row in enumerate(rows, start=1):
        if not (isinstance(row, dict) and type(row.get("step")) is int and type(row.get("member")) is int):
            raise UserError(f"{file} is damaged: row {number} has no step, or no member; put back a copy.")
    return rows


def _content(file: Path) -> bytes:
    if not file.exists():
        return b""
    with open_regular(file) as stream:
        return stream.read()


def describe_environment() -> dict[str, Any]:
    """Versions, commit and hardware."""
    import jax

    return {
        "python": platform.python_version(),
        "packages": _versions(),
        "commit": source_commit(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "devices": [f"{device.platform}:{device.device_kind}" for device in jax.devices()],
    }


@cache
def _versions() -> dict[str, str]:
    """Of the packages that results depend on. They are read from files: 15 ms, which a short run would notice."""
    return {name: metadata.version(name) for name in PACKAGES}


@cache
def source_commit() -> str | None:
    """The commit of the source tree this package runs from, `+` if it was changed since; None for an installed one."""
    here = Path(__file__).parent
    try:
        # An installed package may lie inside somebody else's repository, which does not know this file.
        subprocess.run(["git", "ls-files", "--error-unmatch", __file__], cwd=here, capture_output=True, check=True)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        # Of the package alone: what it writes beside its source, such as evidence, changes nothing that it does.
        command = ["git", "status", "--porcelain", "--", "."]
        changes = subprocess.run(command, cwd=here.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
