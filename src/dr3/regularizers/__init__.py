"""Explicit terms on a Backup. A regularizer is a dataclass with a `coefficient`, called on a Backup for its penalty."""

from dr3.registry import Registry
from dr3.regularizers.base import (
    CriticView,
    Gradients,
    Memory,
    Regularizer,
    Remembering,
    WideRegularizer,
    check_regularizer,
    remembered,
    weigh,
)
from dr3.regularizers.beer import BEER
from dr3.regularizers.chain import Chain
from dr3.regularizers.dr3 import DR3
from dr3.regularizers.feature_norm import FeatureNorm
from dr3.regularizers.label_noise import LabelNoiseDR3
from dr3.regularizers.srank_penalty import SrankPenalty
from dr3.regularizers.sum import Sum
from dr3.regularizers.weights import L2, L2Init

_OWN = (DR3, LabelNoiseDR3, SrankPenalty, FeatureNorm, BEER, L2, L2Init, Chain, Sum)
REGULARIZERS = Registry("regularizer", {cls.name: cls for cls in _OWN})

__all__ = [
    "BEER",
    "DR3",
    "L2",
    "REGULARIZERS",
    "Chain",
    "CriticView",
    "FeatureNorm",
    "Gradients",
    "L2Init",
    "LabelNoiseDR3",
    "Memory",
    "Regularizer",
    "Remembering",
    "SrankPenalty",
    "Sum",
    "WideRegularizer",
    "check_regularizer",
    "remembered",
    "weigh",
]
