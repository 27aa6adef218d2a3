"""Lemma C.1, Lemma C.2, and the four ways to Σ*."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.lyapunov import lyapunov_fixed_point, lyapunov_steps
from dr3.theory import covariance as sigma
from dr3.theory import derivatives as along
from dr3.theory.checks.outcome import Effort, TheoryCheck
from dr3.theory.grams import gram_matrices
from dr3.theory.instances import OF_NOISE, Instance, random_instance, stable
from dr3.theory.noise import label_noise, noise_factor, parameter_noise
from dr3.theory.noisy_td import ornstein_uhlenbeck
from dr3.theory.stability import dense_spectrum

ETA = 0.02


def relative_difference(a: Array, b: Array) -> float:
    """||a - b|| / ||b||."""
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


def lemma_c1(effort: Effort) -> list[TheoryCheck]:
    """G and ∇G[v, v] by automatic differentiation and by the lemma, away from the fixed point so that e_i counts."""
    hessian, derivative = [], []
    for seed in range(5):
        instance = random_instance(seed, n=4, inputs=4, hidden=5)
        problem = dataclasses.replace(instance.problem, rewards=instance.problem.rewards + 1.0)
        theta = instance.theta
        v = jax.random.normal(jax.random.key(100 + seed), theta.shape)
        hessian.append(
            relative_difference(along.pseudo_hessian(problem, theta), along.pseudo_hessian_closed_form(problem, theta))
        )
        derivative.append(
            relative_difference(
                along.pseudo_hessian_derivative(problem, theta, v),
                along.pseudo_hessian_derivative_closed_form(problem, theta, v),
            )
        )
    worst = max(hessian + derivative)
    return [
        TheoryCheck(
            "Lemma C.1",
            "G and ∇G[v, v]: closed form = automatic differentiation, TD errors not 0",
            f"largest relative difference {worst:.1e}",
            worst < 1e-10,
            {"hessian": hessian, "derivative": derivative},
        )
    ]


def lemma_c2(effort: Effort) -> list[TheoryCheck]:
    """The OU process's covariance after k steps, and in the long run, against thousands of simulated chains."""
    instance = next(stable(random_instance, 1))
    G = along.pseudo_hessian(instance.problem, instance.theta)
    M = parameter_noise(instance.J, label_noise(2))
    factor = instance.J.T @ noise_factor(label_noise(2))
    chains, records = 2 * effort.chains, 40
    every = max(1, round(-8 / np.log(instance.stability.spectral_radius(ETA)) / records))  # e^-8 of the start is left
    zetas = ornstein_uhlenbeck(
        G,
        jnp.zeros((chains, len(instance.theta))),
        factor,
        jax.random.fold_in(jax.random.key(instance.seed), OF_NOISE),
        eta=ETA,
        records=records,
        steps_per_record=every,
    )
    half = zetas[:, : chains // 2]  # the other half mirrors it and adds nothing to a covariance
    simulated = jnp.einsum("rci,rcj->rij", half, half) / half.shape[1]
    steps = every * np.arange(1, records + 1)
    traces = [float(jnp.trace(sigma.covariance_steps(G, M, ETA, int(k)))) for k in steps]
    star = sigma.covariance_dense(G, M, ETA)
    # Sample second moments of Gaussians have variance (Σ_ii Σ_jj + Σ_ij²) / chains.
    spread = jnp.sqrt((jnp.outer(jnp.diag(star), jnp.diag(star)) + star**2) / half.shape[1])
    z = jnp.abs(simulated[-1] - star) / spread
    worst = float(z.max())
    return [
        TheoryCheck(
            "Lemma C.2",
            f"covariance of the OU process = Σ*: {half.shape[1]} chains, {steps[-1]} steps",
            f"relative error {relative_difference(simulated[-1], star):.3f}, "
            f"worst entry off by {worst:.1f} standard errors",
            worst < 5,
            {
                "steps": steps.tolist(),
                "trace_predicted": traces,
                "trace_simulated": jnp.trace(simulated, axis1=1, axis2=2).tolist(),
                "trace_star": float(jnp.trace(star)),
                "largest_z": worst,
            },
        )
    ]


def four_ways(effort: Effort) -> list[TheoryCheck]:
    """Σ* by SciPy, k steps, doubling (d x d) and the n x n form; K against G's spectrum."""
    worst, spectra, matrix_free = {"steps": 0.0, "doubling": 0.0, "n x n": 0.0}, [], []
    for instance in stable(random_instance, 5, n=3, hidden=6):
        theta, C = instance.theta, label_noise(3)
        G, M = along.pseudo_hessian(instance.problem, theta), parameter_noise(instance.J, C)
        dense = sigma.covariance_dense(G, M, ETA)
        enough = round(-40 / np.log(instance.stability.spectral_radius(ETA)))
        ways = {
            "steps": sigma.covariance_steps(G, M, ETA, enough),
            "doubling": sigma.covariance_doubling(G, M, ETA),
            "n x n": sigma.parameter_covariance(instance.J, sigma.sample_covariance(instance.grams, C, ETA)),
        }
        for name, way in ways.items():
            worst[name] = max(worst[name], relative_difference(way, dense))
        spectra.append(_spectrum_difference(instance, G))
        free = gram_matrices(instance.problem, theta)
        matrix_free.append(relative_difference(free.K, instance.grams.K))
    return [
        TheoryCheck(
            "Σ*, four ways",
            "SciPy (d x d) = k steps = doubling = JᵀSJ with S n x n",
            ", ".join(f"{name} {value:.1e}" for name, value in worst.items()),
            max(worst.values()) < 1e-9,
            dict(worst),
        ),
        TheoryCheck(
            "K for G",
            "nonzero spectrum of G (d x d) = that of K (n x n); K by Jacobian-vector products = K from J",
            f"{max(spectra):.1e}; {max(matrix_free):.1e}",
            max(spectra + matrix_free) < 1e-8,
            {"spectrum": spectra, "matrix_free": matrix_free},
        ),
    ]


def _spectrum_difference(instance: Instance, G: Array) -> float:
    n = instance.problem.size
    ours, dense = instance.stability.eigenvalues, dense_spectrum(G)
    gaps = np.abs(dense[:n, None] - ours[None]).min(axis=1)  # conjugates may come in either order
    return float(max(gaps.max(), np.abs(dense[n:]).max()) / np.abs(ours).max())


def twenty_steps(effort: Effort) -> list[TheoryCheck]:
    """How much of Σ* the paper's 20 iterations reach, and that the rest comes in as e^(-2 η λ k)."""
    etas = [2e-2, 1e-2, 3e-3, 1e-3, 3e-4, 6.25e-5]
    K = toy_K()
    reached: dict[str, list[float]] = {}
    for steps in (20, 200, 2000):
        reached[str(steps)] = [
            float(jnp.trace(lyapunov_steps(K, eta, steps)) / jnp.trace(lyapunov_fixed_point(K, eta).covariance))
            for eta in etas
        ]
    twenty = dict(zip(etas, reached["20"], strict=True))
    naive = float(jnp.trace(lyapunov_steps(K, 6.25e-5, 20)) / (20 * 6.25e-5**2 * len(K)))
    return [
        TheoryCheck(
            "k = 20 steps",
            "share of trace S that 20 iterations reach falls with η; at 6.25e-5 they are ≈ 20 η² M",
            f"{twenty[1e-2]:.1%} at 1e-2, {twenty[1e-3]:.1%} at 1e-3, {twenty[6.25e-5]:.1%} at 6.25e-5 "
            f"(where they are {naive:.3f} times 20 η² M)",
            reached["20"] == sorted(reached["20"], reverse=True) and twenty[6.25e-5] < 0.1 and 0.9 < naive < 1,
            {"etas": etas, "reached": reached, "eigenvalues": np.linalg.eigvals(np.asarray(K)).real.tolist()},
        )
    ]


def toy_K() -> Array:
    """A K with eigenvalues from 12 to 43 that is not symmetric, as in a small network with n = 6."""
    rotation, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (6, 6)))
    tilt = jnp.eye(6) + 0.2 * jnp.triu(jnp.ones((6, 6)), 1)
    basis = rotation @ tilt
    return basis @ jnp.diag(jnp.linspace(12, 43, 6)) @ jnp.linalg.inv(basis)
