"""A run folder as experiment trackers see it: one tracker run for each member. The folder stays the truth.

Exporting again replaces what was exported before; nothing is written twice.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

from dr3.diagnostics.health import label_of
from dr3.errors import UserError
from dr3.files import refuse_link
from dr3.runs import Runs


def to_tensorboard(runs: Runs, out: Path | None = None) -> list[Path]:
    """Write event files, a folder for each member under `out` (by default `tensorboard` in the run folder)."""
    try:
        from tensorboardX import SummaryWriter
        from tensorboardX.summary import hparams
    except ImportError:
        raise UserError("TensorBoard's files need tensorboardX: pip install 'dr3[tensorboard]'.") from None

    refuse_link(runs.path / "tensorboard")  # the run may be a stranger's
    root = _folder(runs.path / "tensorboard" if out is None else out)
    written = []
    for number in range(len(runs)):
        folder = root / _file_name(runs, number)
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        with SummaryWriter(str(folder)) as writer:
            rows = values_by_step(runs, number)
            # One summary in the member's own folder; the writer's own add_hparams would make a folder of its own.
            last = {name: value for row in rows.values() for name, value in row.items()}
            for summary in hparams(settings(runs, number), last):
                writer.file_writer.add_summary(summary)
            for step, row in rows.items():
                for name, value in row.items():
                    writer.add_scalar(name, value, step)
        written.append(folder)
    return written


def to_wandb(runs: Runs, out: Path | None = None, *, project: str = "dr3") -> list[Path]:
    """Write offline runs under `out`/wandb (by default in the run folder); `wandb sync FOLDER` uploads one.

    A run's id follows from the configuration, so that a second upload is of the same run.
    """
    try:
        import wandb
    except ImportError:
        raise UserError("W&B's files need wandb: pip install 'dr3[wandb]'.") from None

    refuse_link(runs.path / "wandb")  # the run may be a stranger's
    root = _folder(runs.path if out is None else out)
    written = []
    for number in range(len(runs)):
        record = runs.config.to_json()
        identity = json.dumps([record["data"], record["members"][number]], sort_keys=True)
        identity = hashlib.sha256(identity.encode()).hexdigest()[:12]
        for old in root.glob(f"wandb/offline-run-*-{identity}"):
            shutil.rmtree(old)
        tracker = wandb.init(
            mode="offline",
            dir=str(root),
            project=project,
            id=identity,
            name=label_of(runs, number),
            group=runs.path.name,
            config=settings(runs, number),
            settings=wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True),
        )
        for step, row in values_by_step(runs, number).items():
            tracker.log(row, step=step)
        written.append(Path(tracker.dir).parent)
        tracker.finish()
    wandb.teardown()  # its writer is a process of its own, and may be behind: this waits for it
    return written


TRACKERS = {"tensorboard": to_tensorboard, "wandb": to_wandb}


def values_by_step(runs: Runs, number: int) -> dict[int, dict[str, float]]:
    """Every finite metric and evaluation of one member under its own name, by step, in order."""
    rows: dict[int, dict[str, float]] = {}
    for steps, columns in ((runs.steps, runs.metrics), (runs.evaluation_steps, runs.evaluations)):
        for name, values in columns.items():
            for step, value in zip(steps.tolist(), values[number].tolist(), strict=True):
                if math.isfinite(value):
                    rows.setdefault(step, {})[name] = value
    return dict(sorted(rows.items()))


def settings(runs: Runs, number: int) -> dict[str, Any]:
    """One member's configuration, flat, as trackers sort by it: `method.discount`, `regularizer.coefficient`, …"""
    record = runs.members[number].to_json()
    flat: dict[str, Any] = {"data": runs.config.data.name, "steps": runs.config.steps, "seed": record["seed"]}
    for part in ("method", "regularizer"):
        for key, value in (record[part] or {"name": "none"}).items():
            flat[f"{part}.{key}"] = value if isinstance(value, bool | int | float | str) else json.dumps(value)
    return flat


def _file_name(runs: Runs, number: int) -> str:
    """The member's label as a folder name: its number keeps labels apart that become equal."""
    return f"{number:02d}-" + re.sub(r"[^\w.+=-]+", "-", label_of(runs, number)).strip("-")


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from None
    return path
