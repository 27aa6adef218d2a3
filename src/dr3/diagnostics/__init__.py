"""The critic's doctor: measure a critic, say what is wrong with it, choose a checkpoint without a simulator."""

from dr3.diagnostics.checks import Thresholds
from dr3.diagnostics.health import Health, Verdict, health
from dr3.diagnostics.measure import Measurements, measure
from dr3.diagnostics.ranking import RANKINGS, Ranking, rank
from dr3.diagnostics.selection import PROTOCOLS, Selection, select
from dr3.diagnostics.tuning import Tuning, tuning_of

__all__ = [
    "PROTOCOLS",
    "RANKINGS",
    "Health",
    "Measurements",
    "Ranking",
    "Selection",
    "Thresholds",
    "Tuning",
    "Verdict",
    "health",
    "measure",
    "rank",
    "select",
    "tuning_of",
]
