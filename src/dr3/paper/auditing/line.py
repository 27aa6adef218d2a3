"""What one line of the audit is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# "follows": recomputed to the printed digits. "possible": needs runs that were not published, and lies within what the
# published means and deviations allow.
Verdict = Literal["follows", "possible", "does not follow"]
HALF_DIGIT = 0.05 + 1e-9  # Atari and BRAC numbers are printed with one digit


@dataclass(frozen=True)
class AuditLine:
    """One published statement beside what the details give."""

    section: str
    statement: str
    published: str
    recomputed: str
    verdict: Verdict
