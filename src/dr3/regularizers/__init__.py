"""Explicit terms on a Backup. A regularizer is a dataclass with a `coefficient`, called on a Backup for its penalty."""

from dr3.regularizers.base import GradientRegularizer, Gradients, Regularizer, check_regularizer
from dr3.regularizers.dr3 import DR3
from dr3.regularizers.feature_norm import FeatureNorm
from dr3.regularizers.label_noise import LabelNoiseDR3
from dr3.regularizers.srank_penalty import SrankPenalty

REGULARIZERS: dict[str, type] = {cls.name: cls for cls in (DR3, LabelNoiseDR3, SrankPenalty, FeatureNorm)}

__all__ = [
    "DR3",
    "REGULARIZERS",
    "FeatureNorm",
    "GradientRegularizer",
    "Gradients",
    "LabelNoiseDR3",
    "Regularizer",
    "SrankPenalty",
    "check_regularizer",
]
