"""The results file: one JSON object per line for each (algorithm, task, seed, checkpoint), with raw episode returns.

    {"algorithm": "CQL+DR3", "task": "minatar/breakout@1%", "seed": 0, "step": 10000, "returns": [3.0, 7.0]}

A field "score" is optional: the normalised score of that checkpoint, where the writer knows how its task is normalised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dr3.errors import UserError
from dr3.files import exists, open_regular, parse_json, write_text


@dataclass(frozen=True)
class CheckpointResult:
    """One evaluated checkpoint of one run."""

    algorithm: str
    task: str
    seed: int
    step: int
    returns: tuple[float, ...]  # one undiscounted return per evaluation episode
    score: float | None = None

    @property
    def cell(self) -> tuple[str, str, int, int]:
        """What identifies the row."""
        return self.algorithm, self.task, self.seed, self.step

    def to_json(self) -> str:
        fields = {
            "algorithm": self.algorithm,
            "task": self.task,
            "seed": int(self.seed),
            "step": int(self.step),
            "returns": [float(value) for value in self.returns],
        }
        if self.score is not None:
            fields["score"] = float(self.score)
        # NaN is not JSON, and a return that is not a number must not pass for a missing run.
        return json.dumps(fields, allow_nan=False)


def write_results(path: str | Path, results: Iterable[CheckpointResult]) -> None:
    """Write a results file, replacing what was there.

    Args:
        path: The results file.
        results: The rows.
    """
    write_text(Path(path), "".join(result.to_json() + "\n" for result in results))


def append_results(path: str | Path, results: Iterable[CheckpointResult]) -> None:
    """Add rows to a results file, creating it if need be.

    A row counts once its line is complete: the torn last line of a killed process is cut off first, so the run can be
    resumed and that checkpoint evaluated again.

    Args:
        path: The results file.
        results: The rows.
    """
    lines = "".join(result.to_json() + "\n" for result in results).encode()
    with Path(path).open("ab+") as file:
        file.seek(0)
        tail = file.read().rpartition(b"\n")[2]
        if tail and _is_json(tail):
            lines = b"\n" + lines
        elif tail:
            file.truncate(file.tell() - len(tail))
        file.write(lines)


def read_results(*paths: str | Path) -> list[CheckpointResult]:
    """All rows of one or more results files.

    The same row twice (a file named twice, a checkpoint evaluated again after a resume) counts once; two rows that
    disagree about one checkpoint are refused.

    Args:
        paths: The files.
    """
    if not paths:
        raise UserError("no results file was named.")
    rows: dict[tuple[str, str, int, int], tuple[CheckpointResult, str]] = {}
    for path in map(Path, paths):
        for result, place in _rows(path):
            earlier, where = rows.setdefault(result.cell, (result, place))
            if earlier != result:
                raise UserError(
                    f"{place} and {where} disagree about {result.algorithm}, {result.task}, seed {result.seed}, "
                    f"step {result.step}: give the two runs different seeds or remove one."
                )
    if not rows:
        raise UserError(f"{', '.join(map(str, paths))}: there is no result in it.")
    return [result for result, _ in rows.values()]


def _rows(path: Path) -> Iterable[tuple[CheckpointResult, str]]:
    if not exists(path):
        raise UserError(f"{path}: there is no such results file.")
    try:
        with open_regular(path) as file:
            text = file.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: it is not a text file, so not a results file.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _parse(line, f"{path}, line {number}"), f"{path}, line {number}"


def _parse(line: str, place: str) -> CheckpointResult:
    try:
        fields = parse_json(line)
    except ValueError as error:
        raise UserError(f"{place}: this is not a complete JSON object; remove the line.") from error
    if not isinstance(fields, dict):
        raise UserError(f"{place}: a row is a JSON object, not {type(fields).__name__}.")
    wanted = {"algorithm": str, "task": str, "seed": int, "step": int, "returns": list}
    for name, kind in wanted.items():
        if name not in fields:
            raise UserError(f"{place}: the field {name!r} is missing.")
        if not isinstance(fields[name], kind) or isinstance(fields[name], bool):
            raise UserError(f"{place}: the field {name!r} must be of type {kind.__name__}.")
    score = fields.get("score")
    for value in [*fields["returns"], *([] if score is None else [score])]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(f"{place}: returns and score must be finite numbers, not {value!r}.")
    if not fields["returns"] and score is None:
        raise UserError(f"{place}: it has neither returns nor a score.")
    return CheckpointResult(
        fields["algorithm"],
        fields["task"],
        fields["seed"],
        fields["step"],
        tuple(float(value) for value in fields["returns"]),
        None if score is None else float(score),
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
