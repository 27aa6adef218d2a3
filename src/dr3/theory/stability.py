"""Condition (1) of Theorem 3.1, the step-size condition it silently needs, and Definition C.1's alignment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jax import Array
from numpy.typing import NDArray

from dr3.theory.grams import Grams


@dataclass(frozen=True)
class Stability:
    """What the nonzero spectrum of G, an n x n eigenvalue problem, says about a fixed point."""

    eigenvalues: NDArray[np.complex128]  # nonzero λ(G) = λ(K), by decreasing modulus
    smallest_real_part: float
    condition_one: bool  # Re λ > 0 for all of them (the zeros of overparameterisation are allowed)
    largest_step: float  # |1 - ηλ| < 1 for all λ iff 0 < η < this; 0 where condition (1) fails

    def contracts(self, eta: float) -> bool:
        """Whether I - ηG contracts on Range(G): condition (1) and η < min 2 Re λ / |λ|² (errata 10)."""
        return 0 < eta < self.largest_step

    def spectral_radius(self, eta: float) -> float:
        """max |1 - ηλ| over the nonzero λ."""
        return float(np.abs(1 - eta * self.eigenvalues).max())


def stability(grams: Grams, *, tolerance: float | None = None) -> Stability:
    """Of a fixed point (all e_i = 0), for a network of any size. Away from one it describes the part of G without e_i.

    K is read on Range(J) alone, where its eigenvalues are G's nonzero ones; what repeated samples add are zeros.
    tolerance: directions of JJᵀ below it times the largest count as repeats; n·eps unless given.
    """
    same, K = np.asarray(grams.same), np.asarray(grams.K)
    sizes, vectors = np.linalg.eigh(same)
    tolerance = len(same) * np.finfo(same.dtype).eps if tolerance is None else tolerance
    basis = vectors[:, sizes > tolerance * sizes[-1]]
    if basis.shape[1] == 0:
        return Stability(np.zeros(0, np.complex128), 0.0, True, np.inf)
    eigenvalues = np.linalg.eigvals(basis.T @ K @ basis).astype(np.complex128)
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues))]
    smallest = float(eigenvalues.real.min())
    step = float((2 * eigenvalues.real / np.abs(eigenvalues) ** 2).min()) if smallest > 0 else 0.0
    return Stability(eigenvalues, smallest, smallest > 0, step)


@dataclass(frozen=True)
class Alignment:
    """Definition C.1's numbers for (A, B), reported and not judged: |cos| <= ω holds for every pair at ω = 1."""

    diagonal: NDArray[np.float64]  # |U_Bᴴ(i) U_A(i)|, paired by decreasing eigenvalue
    norm: float  # ||U_Bᴴ U_A||, the factor the contraction bound really uses; 1 if B is normal
    ratio: float  # C_0 = max_i Λ_A(i) / |Λ_B(i)|
    eigenvector_condition: float  # cond(U_B): what the bounds gain where B is not normal (errata 12)


def alignment(A: Array, B: Array, *, tolerance: float = 1e-10) -> Alignment:
    """Of a positive semidefinite A (d, d) with any B (d, d) of the same rank; G and Σ ∇Q∇Qᵀ, or G and M."""
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
    """All d eigenvalues of G, by decreasing modulus; for comparison with the n x n form."""
    eigenvalues = np.linalg.eigvals(np.asarray(G)).astype(np.complex128)
    return eigenvalues[np.argsort(-np.abs(eigenvalues))]
