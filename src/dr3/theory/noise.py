"""Noise models M of Eq. 3. Under Assumption 2 every M is JᵀCJ with C (n, n): a model here is its C.

An M that leaves the span of the ∇Q_i has no Σ*: outside it I - ηG does not contract and the variance grows for ever.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from dr3.errors import UserError
from dr3.instruments import Grams
from dr3.lyapunov import support_of


def label_noise(size: int, *, sigma: float = 1.0) -> Array:
    """Targets corrupted by N(0, σ²): M = σ² Σ_i ∇Q_i ∇Q_iᵀ, so C = σ² I.

    Args:
        size: How many numbers in a row.
        sigma: The standard deviation σ.
    """
    return sigma**2 * jnp.eye(size)


def isotropic_noise(grams: Grams, *, sigma: float = 1.0) -> Array:
    """M = σ² times the orthogonal projector onto span{∇Q_i}: C = σ² (JJᵀ)⁺. (A full σ² I violates Assumption 2.)

    Args:
        grams: The problem's Gram matrices, (n, n).
        sigma: The standard deviation σ.
    """
    return sigma**2 * jnp.linalg.pinv(grams.same, hermitian=True)


def sgd_noise(errors: Array, batch_size: int) -> Array:
    """What minibatches do: `batch_size` rows drawn with replacement, scaled to estimate the summed pseudo-gradient.

    Per-example pseudo-gradients are e_i ∇Q_i, so C = (n / b)(diag(e²) - e eᵀ / n). It vanishes where all e_i do: at an
    exact fixed point plain SGD has no noise, and the theory needs another source of it.

    Args:
        errors: TD errors, (n,).
        batch_size: Rows of a minibatch.
    """
    n = errors.shape[0]
    return (n / batch_size) * (jnp.diag(errors**2) - jnp.outer(errors, errors) / n)


def given_noise(J: Array, M: Array, *, tolerance: float = 1e-8) -> Array:
    """C of any given M (d, d), refused where M does not lie in the span of the ∇Q_i (Assumption 2).

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        M: The covariance of the noise, (d, d).
        tolerance: What counts as zero, relative to the largest.
    """
    back = jnp.linalg.pinv(J)  # (d, n)
    C = back.T @ M @ back
    outside = jnp.linalg.norm(M - J.T @ C @ J)
    if outside > tolerance * jnp.linalg.norm(M):
        raise UserError(
            f"The given noise covariance M has a part of norm {float(outside):.3g} outside the span of the gradients, "
            "where no stationary covariance exists; project it onto that span first."
        )
    return C


def noise_with_identity_covariance(grams: Grams, eta: float) -> tuple[Array, bool]:
    """The C for which Σ* is the identity on span{∇Q_i}, and whether it is a covariance at all.

    η²C = S - (I - ηK) S (I - ηK)ᵀ with S = (JJᵀ)⁺. The paper interprets Eq. 4 "for M such that Σ*_M = I"; where this C
    has a negative eigenvalue no such M exists.

    Args:
        grams: The problem's Gram matrices, (n, n).
        eta: η, the step size.
    """
    S = jnp.linalg.pinv(grams.same, hermitian=True)
    support = support_of(grams.same)
    A = support - eta * support @ grams.K @ support
    C = (S - A @ S @ A.T) / eta**2
    eigenvalues = jnp.linalg.eigvalsh((C + C.T) / 2)
    return C, bool(eigenvalues[0] >= -1e-9 * jnp.abs(eigenvalues).max())


def parameter_noise(J: Array, C: Array) -> Array:
    """M = JᵀCJ: (d, d).

    Args:
        J: ∇Q(s, a) by rows, (n, d).
        C: (n, n), with M = JᵀCJ.
    """
    return J.T @ C @ J


def noise_factor(C: Array) -> Array:
    """F (n, n) with FFᵀ = C, for sampling ε = JᵀF ξ with ξ ~ N(0, I_n); C may be singular.

    Args:
        C: (n, n), with M = JᵀCJ.
    """
    eigenvalues, vectors = jnp.linalg.eigh((C + C.T) / 2)
    if eigenvalues[0] < -1e-9 * jnp.abs(eigenvalues).max():
        raise UserError(f"This noise is no covariance: it has the negative eigenvalue {float(eigenvalues[0]):.3g}.")
    return vectors * jnp.sqrt(jnp.clip(eigenvalues, 0))
