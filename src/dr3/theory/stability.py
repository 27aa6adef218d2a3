"""Condition (1) of Theorem 3.1, the step-size condition it silently needs, and the alignment of Definition 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3 import instruments
from dr3.instruments import Grams, Stability


def stability(grams: Grams, *, tolerance: float | None = None) -> Stability:
    """`instruments.stability` of a problem's Gram matrices.

    Args:
        grams: The problem's Gram matrices, (n, n).
        tolerance: What counts as zero, relative to the largest; None where it follows from the rounding.
    """
    return instruments.stability(np.asarray(grams.same), np.asarray(grams.K), tolerance=tolerance)


@dataclass(frozen=True)
class Alignment:
    """Definition 1's numbers for (A, B), reported and not judged: |cos| <= ω holds for every pair at ω = 1."""

    diagonal: NDArray[np.float64]  # |U_Bᴴ(i) U_A(i)|, paired by decreasing eigenvalue
    norm: float  # ||U_Bᴴ U_A||, the factor the contraction bound really uses; 1 if B is normal
    ratio: float  # C_0 = max_i Λ_A(i) / |Λ_B(i)|
    eigenvector_condition: float  # cond(U_B): what the bounds gain where B is not normal (errata 12)


def alignment(A: Array, B: Array, *, tolerance: float = 1e-10) -> Alignment:
    """Of a positive semidefinite A (d, d) with any B (d, d) of the same rank; G and Σ ∇Q∇Qᵀ, or G and M.

    Args:
        A: (d, d), positive semidefinite.
        B: (d, d).
        tolerance: What counts as zero, relative to the largest.
    """
    sizes, vectors = np.linalg.eigh(np.asarray(A))
    values, other = np.linalg.eig(np.asarray(B))
    order, other_order = np.argsort(-sizes), np.argsort(-np.abs(values))
    rank = int((np.abs(values) > tolerance * np.abs(values).max()).sum())
    U_A, U_B = vectors[:, order[:rank]], other[:, other_order[:rank]]
    overlap = U_B.conj().T @ U_A
    singular_values = np.linalg.svd(U_B, compute_uv=False)
    return Alignment(
        diagonal=np.abs(np.diagonal(overlap)),
        norm=float(np.linalg.norm(overlap, 2)),
        ratio=float((sizes[order[:rank]] / np.abs(values[other_order[:rank]])).max()),
        eigenvector_condition=float(singular_values[0] / singular_values[-1]),
    )


def dense_spectrum(G: Array) -> NDArray[np.complex128]:
    """All d eigenvalues of G, by decreasing modulus; for comparison with the n x n form.

    Args:
        G: The pseudo-Hessian, (d, d).
    """
    eigenvalues = np.linalg.eigvals(np.asarray(G)).astype(np.complex128)
    return eigenvalues[np.argsort(-np.abs(eigenvalues))]
