"""Prediction and fact over a window of steps, where the theory must hold: a small network at a fixed point."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.theory import label_noise, mean_dot_product, predicted_drift
from dr3.theory.instances import random_instance, stable
from dr3.theory.watch import noise_effect, noiseless_td, predicted_effect

ETA, STEPS = 0.02, 300


@pytest.fixture(scope="module")
def instance():
    with jax.enable_x64(True):
        return next(stable(random_instance, 1))


def test_without_noise_a_fixed_point_stays(instance) -> None:
    np.testing.assert_allclose(noiseless_td(instance.problem, instance.theta, eta=ETA, steps=50), instance.theta)


def test_prediction_over_a_window_is_what_chains_do(instance) -> None:
    problem, theta, noise = instance.problem, instance.theta, label_noise(2, sigma=0.03)
    measured, error = noise_effect(
        problem, theta, noise, theta, eta=ETA, steps=STEPS, chains=1000, key=jax.random.key(0)
    )
    predicted = float(predicted_effect(problem, theta, instance.grams, noise, eta=ETA, steps=STEPS))
    assert abs(measured - predicted) < 4 * error + 0.02 * abs(predicted)
    assert abs(predicted) > 10 * error  # so that the line above can fail


def test_prediction_tends_to_the_theorem_s_drift(instance) -> None:
    """Once Σ_k is Σ*, one more step adds what Theorem 3.1 says."""
    problem, theta, noise = instance.problem, instance.theta, label_noise(2)
    later, before = (
        float(predicted_effect(problem, theta, instance.grams, noise, eta=ETA, steps=steps)) for steps in (4001, 4000)
    )
    drift = predicted_drift(problem, theta, noise, eta=ETA, grams=instance.grams).corrected
    gradient = jax.grad(mean_dot_product, argnums=1)(problem, theta)
    assert later - before == pytest.approx(float(gradient @ drift), rel=1e-6)
    assert jnp.isfinite(later)
