"""Theorem 3.1: where thousands of noisy TD chains drift, against the corrected and the printed regularizer."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dr3.theory.checks.outcome import Effort, TheoryCheck
from dr3.theory.covariance import sample_covariance
from dr3.theory.drift import Drift, mean_dot_product, mean_squared_norm, predicted_drift
from dr3.theory.instances import OF_NOISE, OF_STARTS, Instance, random_instance, random_pair, stable
from dr3.theory.noise import label_noise, noise_factor, noise_with_identity_covariance
from dr3.theory.noisy_td import noisy_td, paired_draws
from dr3.theory.null_spaces import null_space_cosines

ETA = 0.02
SIGMA = 0.05  # label noise; the theorem is about small noise, and only η σ² enters its error
RECORDS = 25
STEPS_PER_RECORD = 50  # one unit of η k: RECORDS units in all
SETTLED = 10  # records left out: θ's shift within Range(G) settles like e^(-λ η k), at worst e^-6 here


class Walk(NamedTuple):
    """The mean of many chains."""

    means: Array  # (RECORDS, d) θ averaged over chains, every STEPS_PER_RECORD steps
    per_step: Array  # (d,) mean displacement per step once settled


def walk(instance: Instance, chains: int, *, sigma: float = SIGMA) -> Walk:
    """Chains started from the stationary law of their OU process at θ*, so that only the drift is left to see."""
    C = label_noise(instance.problem.size, sigma=sigma)
    S = sample_covariance(instance.grams, C, ETA)
    of_starts, of_noise = (jax.random.fold_in(jax.random.key(instance.seed), part) for part in (OF_STARTS, OF_NOISE))
    starts = paired_draws(of_starts, chains, instance.problem.size) @ noise_factor(S).T @ instance.J
    thetas = noisy_td(
        instance.problem,
        instance.theta + starts,
        instance.J.T @ noise_factor(C),
        of_noise,
        eta=ETA,
        records=RECORDS,
        steps_per_record=STEPS_PER_RECORD,
    )
    means = thetas.mean(axis=1)
    return Walk(means, (means[-1] - means[SETTLED]) / ((RECORDS - 1 - SETTLED) * STEPS_PER_RECORD))


def drift_at(instance: Instance, *, sigma: float = SIGMA) -> Drift:
    """The prediction for the same noise."""
    C = label_noise(instance.problem.size, sigma=sigma)
    return predicted_drift(instance.problem, instance.theta, C, eta=ETA, grams=instance.grams)


def agreement(measured: Array, predicted: Array) -> tuple[float, float]:
    """Least-squares coefficient of measured on predicted, and their cosine."""
    product = measured @ predicted
    norms = jnp.linalg.norm(measured) * jnp.linalg.norm(predicted)
    return float(product / (predicted @ predicted)), float(product / norms)


def theorem_31(effort: Effort) -> list[TheoryCheck]:
    """Both regularizers on the same chains, and the limit of small noise on the first instance."""
    rows, first = [], None
    for instance in stable(random_instance, effort.instances):
        first = first or instance
        measured, predicted = walk(instance, effort.chains), drift_at(instance)
        corrected, printed = (
            agreement(measured.per_step, predicted.corrected),
            agreement(measured.per_step, predicted.printed),
        )
        direction = predicted.corrected / jnp.linalg.norm(predicted.corrected)
        rows.append(
            {
                "seed": instance.seed,
                "eigenvalues": [[value.real, value.imag] for value in instance.stability.eigenvalues],
                "corrected": corrected,
                "printed": printed,
                "null_space_cosine": float(null_space_cosines(*_sides(instance)).min()),
                "along": ((measured.means - instance.theta) @ direction).tolist(),
                "slope": float(jnp.linalg.norm(predicted.corrected)) * STEPS_PER_RECORD,
                "printed_slope": float(predicted.printed @ direction) * STEPS_PER_RECORD,
                "measured": (measured.per_step / ETA**2 / SIGMA**2).tolist(),
                "predicted": (predicted.corrected / ETA**2 / SIGMA**2).tolist(),
                "predicted_printed": (predicted.printed / ETA**2 / SIGMA**2).tolist(),
            }
        )
    assert first is not None
    scales = [
        (sigma, *agreement(walk(first, effort.chains, sigma=sigma).per_step, drift_at(first, sigma=sigma).corrected))
        for sigma in effort.noise_scales
    ]
    ours, theirs = np.array([row["corrected"] for row in rows]), np.array([row["printed"] for row in rows])
    numbers = {"instances": rows, "noise_scales": scales, "eta": ETA, "sigma": SIGMA, "chains": effort.chains}
    size = f"{len(rows)} instances, {effort.chains} chains of {RECORDS * STEPS_PER_RECORD} steps"
    return [
        TheoryCheck(
            "Theorem 3.1, corrected",
            f"mean displacement = -η Π Σ ∇²Q_i Σ*(∇Q_i - γ∇Q'_i): {size}",
            f"coefficient {ours[:, 0].min():.3f} to {ours[:, 0].max():.3f}, cosine >= {ours[:, 1].min():.4f}",
            all(follows(*pair) for pair in ours),
            numbers,
        ),
        TheoryCheck(
            "Theorem 3.1, as printed",
            "the same with the gradient of R_TD as printed, 2 Σ ∇²Q_i Σ*∇Q_i - γ(…): must fail",
            f"coefficient {theirs[:, 0].min():.3f} to {theirs[:, 0].max():.3f}, cosine >= {theirs[:, 1].min():.4f}",
            not any(follows(*pair) for pair in theirs),
            must_fail=True,
        ),
    ]


def follows(coefficient: float, cosine: float) -> bool:
    """The acceptance test of the drift."""
    return 0.97 <= coefficient <= 1.03 and cosine > 0.99


def in_and_out_of_sample(effort: Effort) -> list[TheoryCheck]:
    """What the drift does to ∇Q·∇Q' when a' is logged and when it is not, on the same data: predicted and simulated."""
    to_product = jax.jit(jax.grad(mean_dot_product, argnums=1))
    to_norm = jax.jit(jax.grad(mean_squared_norm, argnums=1))
    sides: dict[str, dict[str, list]] = {
        side: {
            name: [] for name in ("net", "supervised", "bootstrap", "norm", "identity", "identity_exists", "simulated")
        }
        for side in ("in sample", "out of sample")
    }
    for index, pair in enumerate(stable(random_pair, effort.pairs, slowest=0.4)):
        for (_, numbers), instance in zip(sides.items(), pair, strict=True):
            problem, theta = instance.problem, instance.theta
            gradient, unit = to_product(problem, theta), ETA**2 * SIGMA**2
            drift = drift_at(instance)
            changes = drift.changes(gradient)
            numbers["net"].append(changes["corrected"] / unit)
            numbers["supervised"].append(changes["supervised"] / unit)
            numbers["bootstrap"].append(changes["bootstrap"] / unit)
            numbers["norm"].append(drift.changes(to_norm(problem, theta))["corrected"] / unit)
            noise, exists = noise_with_identity_covariance(instance.grams, ETA)
            identity = predicted_drift(
                problem, theta, noise, eta=ETA, grams=instance.grams, S=jnp.linalg.inv(instance.grams.same)
            )
            numbers["identity"].append(identity.changes(gradient)["corrected"] / ETA)
            numbers["identity_exists"].append(exists)
            if index < effort.simulated_pairs:
                walked = walk(instance, effort.chains)
                change = mean_dot_product(problem, walked.means[-1]) - mean_dot_product(problem, walked.means[SETTLED])
                numbers["simulated"].append(float(change) / ((RECORDS - 1 - SETTLED) * STEPS_PER_RECORD) / unit)
    checks = []
    for side, numbers in sides.items():
        simulated = np.array(numbers["simulated"])
        predicted = np.array(numbers["net"][: len(simulated)])
        error = float(np.linalg.norm(simulated - predicted) / np.linalg.norm(predicted))
        rising = {
            name: float(np.mean(np.array(numbers[name]) > 0)) for name in ("net", "supervised", "bootstrap", "norm")
        }
        checks.append(
            TheoryCheck(
                f"∇Q·∇Q', {side}",
                f"simulated drift of the dot products = predicted drift ({len(simulated)} pairs), label noise",
                f"off by {error:.1%} of it; predicted sizes {_list(predicted)} η²σ²",
                error < 0.05,
                {**numbers, "relative_error": error, "rising": rising},
            )
        )
        checks.append(
            TheoryCheck(
                f"its sign, {side}",
                f"share of {effort.pairs} networks whose drift raises the dot products; the part TD adds alone",
                f"{rising['net']:.0%} (median {np.median(numbers['net']):+.2f} η²σ²); "
                f"added part {rising['bootstrap']:.0%} (median {np.median(numbers['bootstrap']):+.2f})",
                None,
            )
        )
    return checks


def _sides(instance: Instance) -> tuple[Array, Array, Array]:
    return instance.J, instance.J_next, instance.problem.discounts


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:+.2f}" for value in values)
