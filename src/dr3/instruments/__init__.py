"""Instruments: small pure functions of the arrays in a Backup, each with its definition."""

from dr3.instruments.features import cosine, dot_product, norm
from dr3.instruments.rank import srank

__all__ = ["cosine", "dot_product", "norm", "srank"]
