"""What a policy is worth without a simulator: estimates from a log, with intervals, and how far to trust them."""

from dr3.ope.evaluation import ESTIMATORS, Evaluation, PolicyValue, evaluate
from dr3.ope.fqe import FQE, Fit
from dr3.ope.importance import (
    Episodes,
    bootstrap_interval,
    doubly_robust,
    effective_sample_size,
    mean_interval,
    per_decision,
    weighted,
)

__all__ = [
    "ESTIMATORS",
    "FQE",
    "Episodes",
    "Evaluation",
    "Fit",
    "PolicyValue",
    "bootstrap_interval",
    "doubly_robust",
    "effective_sample_size",
    "evaluate",
    "mean_interval",
    "per_decision",
    "weighted",
]
