"""What every collection checks before it begins, and before it goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dr3.errors import UserError
from dr3.methods import DQN

REQUEST = "config.json"


def check_request(path: Path, *, steps: int, seed: int, method: DQN) -> None:
    method.check()
    if path.exists():
        raise UserError(f"{path} is there already; remove it or choose another name.")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder it should be written to does not exist.")
    if not 0 <= seed < 2**32:
        raise UserError(f"A seed is a whole number from 0 to 4294967295, not {seed}.")
    if method.batch_size < 1:
        raise UserError("batch_size must be at least 1: a replay that grows has no whole table to learn from.")
    if steps < 1:
        raise UserError(f"steps must be at least 1, not {steps}.")


def check_same(folder: Path, asked: dict[str, Any]) -> None:
    """Refuse to go on with another collection than the one that was asked for."""
    if not (folder / REQUEST).exists():
        return
    stored = json.loads((folder / REQUEST).read_text())
    for key, value in json.loads(json.dumps(asked)).items():
        if stored.get(key) != value:
            raise UserError(
                f"{folder} holds an unfinished collection whose {key} is another ({stored.get(key)!r}, not "
                f"{value!r}); choose another file, or remove that folder."
            )


def note_request(folder: Path, asked: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / REQUEST).write_text(json.dumps(asked, indent=2) + "\n")
