"""Instruments: small pure functions of plain arrays, each with its definition."""

from dr3.data.return_bounds import ReturnBounds, return_bounds
from dr3.instruments.activity import dead_features, dormant_features
from dr3.instruments.features import cosine, dot_product, norm
from dr3.instruments.rank import effective_rank, numerical_rank, pca_rank, srank, stable_rank, threshold_rank
from dr3.instruments.stability import Grams, Stability, co_adaptation_ratio, last_layer_grams, stability, updates_until
from dr3.instruments.values import ValueStatistics, td_error, value_statistics

__all__ = [
    "Grams",
    "ReturnBounds",
    "Stability",
    "ValueStatistics",
    "co_adaptation_ratio",
    "cosine",
    "dead_features",
    "dormant_features",
    "dot_product",
    "effective_rank",
    "last_layer_grams",
    "norm",
    "numerical_rank",
    "pca_rank",
    "return_bounds",
    "srank",
    "stability",
    "stable_rank",
    "td_error",
    "threshold_rank",
    "updates_until",
    "value_statistics",
]
