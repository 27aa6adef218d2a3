"""What an experiment misses before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dr3.errors import UserError
from dr3.sweeps import Job, missing_files


def check_data(jobs: Iterable[Job], data: Path) -> None:
    """Refuse to begin while data is missing, and name all of it."""
    missing = missing_files(jobs)
    if missing:
        raise UserError(
            f"{len(missing)} data sets are missing: {', '.join(missing)}; put them there, or name the folder that "
            f"holds them with --data (now {data})."
        )
