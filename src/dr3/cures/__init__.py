"""Which remedy helps this critic: one grid over published remedies and seeds, and one page that answers."""

from dr3.cures.outcome import CureOutcome, CureRow, RemedyRanking, gather_outcome, rank
from dr3.cures.page import cure_page
from dr3.cures.plan import CurePlan, steps_within
from dr3.cures.record import PlanRecord, going_on
from dr3.cures.remedies import REMEDIES, Remedy, Treatment, default_treatments, treatment_for

__all__ = [
    "REMEDIES",
    "CureOutcome",
    "CurePlan",
    "CureRow",
    "PlanRecord",
    "Remedy",
    "RemedyRanking",
    "Treatment",
    "cure_page",
    "default_treatments",
    "gather_outcome",
    "going_on",
    "rank",
    "steps_within",
    "treatment_for",
]
