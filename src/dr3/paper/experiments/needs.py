"""What an experiment finds, makes or misses before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dr3.errors import UserError
from dr3.sweeps import Job, Preparation, data_of


def missing_data(jobs: Iterable[Job]) -> list[str]:
    """Those that are not there and that nothing makes."""
    jobs = list(jobs)
    made = {job.name for job in jobs if isinstance(job, Preparation)}
    return [word for word in data_of(job for job in jobs if not made & set(job.needs)) if not Path(word).exists()]


def check_data(jobs: Iterable[Job], data: Path) -> None:
    """Refuse to begin while data is missing, and name all of it."""
    missing = missing_data(jobs)
    if missing:
        raise UserError(
            f"{len(missing)} data sets are missing: {', '.join(missing)}; put them there, or name the folder that "
            f"holds them with --data (now {data})."
        )
