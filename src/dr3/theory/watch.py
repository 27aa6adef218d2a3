"""The theory beside a real run: Q-learning on a gridworld, and at checkpoints of it what noise does and should do.

The limits of Theorem 3.1 (Σ* and Π) need every Re λ(K) > 0, which a Q-learning run need not give. So this uses the same
two ingredients before their limits: over k steps from a checkpoint, with ν the deviation that noise causes and
A = I - ηG,

    Σ_{j+1} = A Σ_j Aᵀ + η²M,      E ν_{j+1} = A E ν_j - (η/2) ∇G[Σ_j]      (Lemma C.2 and Eq. 6 to second order)
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from dr3.instruments import Grams
from dr3.theory.derivatives import pseudo_gradient, pseudo_hessian_product
from dr3.theory.drift import mean_dot_product, mean_squared_norm
from dr3.theory.grams import gram_matrices
from dr3.theory.gridworld import GAMMA, q_learning
from dr3.theory.noise import label_noise, noise_factor, sgd_noise
from dr3.theory.noisy_td import noisy_td
from dr3.theory.problem import TDProblem, td_problem
from dr3.theory.regularizer import hessian_product
from dr3.theory.stability import stability

BATCH = 32
CHECKPOINTS = [0, 100, 300, 1000, 3000, 10_000, 30_000]
EVERY = 4  # the theory looks at every fourth row: 64 of the 256, which makes the whole page a matter of minutes


def watch(steps: list[int], *, seed: int, window: int = 200, chains: int = 64) -> list[dict[str, Any]]:
    """One row of numbers for each step, in float64. Changes of the mean ∇Q·∇Q' are per step of a window of TD steps.

    The windows are Eq. 3 itself: plain TD on a quarter of the rows with the checkpoint's greedy a', with and without
    noise, at η = 0.05 / max |λ(K)|.
    """
    method, data, snapshots = q_learning(steps, hidden=(32, 32), batch_size=BATCH, seed=seed)

    def q(critic: Any, inputs: tuple[Array, Array]) -> Array:
        return method.values(critic, *inputs)

    chosen = slice(None, None, EVERY)
    first, data = snapshots[0], data.rows(chosen)
    pairs, next_pairs = (data.observations, data.actions), (data.next_observations, first.next_actions[chosen])
    problem, _ = td_problem(q, first.critic, pairs, next_pairs, data.rewards, GAMMA, bootstraps=1 - data.terminals)
    rows = []
    for snapshot in snapshots:
        theta = jnp.asarray(ravel_pytree(snapshot.critic)[0], jnp.float64)
        problem = dataclasses.replace(problem, next_inputs=(problem.next_inputs[0], snapshot.next_actions[chosen]))
        product = float((snapshot.phi * snapshot.phi_next).sum(-1).mean())
        rows.append({"seed": seed, "step": snapshot.step, "feature_product": product})
        rows[-1] |= _measure(problem, theta, window, chains, jax.random.key(snapshot.step))
    return rows


def _measure(problem: TDProblem, theta: Array, window: int, chains: int, key: Array) -> dict[str, Any]:
    grams = gram_matrices(problem, theta, block=32)
    spectrum = stability(grams)
    eta = float(0.05 / np.abs(spectrum.eigenvalues).max())
    errors = problem.errors(theta)
    calm = noiseless_td(problem, theta, eta=eta, steps=window)
    row: dict[str, Any] = {
        "dot_product": float(mean_dot_product(problem, theta)),
        "squared_norm": float(mean_squared_norm(problem, theta)),
        "td_error": float(jnp.sqrt(jnp.mean(errors**2))),
        "eta": eta,
        "eigenvalues": [[value.real, value.imag] for value in spectrum.eigenvalues],
        "condition_one": spectrum.condition_one,
        "td_itself": float(mean_dot_product(problem, calm) - mean_dot_product(problem, theta)) / window,
    }
    size = float(jnp.mean(errors**2))
    # Label noise as strong as the TD errors are, so that both noises are of the size that minibatches make.
    models = {"sgd": sgd_noise(errors, BATCH), "label": size * label_noise(problem.size) * problem.size / BATCH}
    for name, noise in models.items():
        measured, spread = noise_effect(problem, theta, noise, calm, eta=eta, steps=window, chains=chains, key=key)
        row[name] = {
            "measured": measured / window,
            "standard_error": spread / window,
            "predicted": float(predicted_effect(problem, theta, grams, noise, eta=eta, steps=window)) / window,
        }
    return row


def noise_effect(
    problem: TDProblem, theta: Array, noise: Array, calm: Array, *, eta: float, steps: int, chains: int, key: Array
) -> tuple[float, float]:
    """By how much noise shifts the mean ∇Q·∇Q' of the average chain against the noiseless one, and a standard error."""
    _, pull_back = jax.vjp(problem.values, theta)
    factor = jax.vmap(lambda column: pull_back(column)[0])(noise_factor(noise).T).T  # Jᵀ F: (d, n)
    starts = jnp.broadcast_to(theta, (chains, len(theta)))
    ends = noisy_td(problem, starts, factor, key, eta=eta, records=1, steps_per_record=steps)[0]
    gradient = jax.grad(mean_dot_product, argnums=1)(problem, calm)
    # Averaging each pair of opposite chains first takes out what is odd in the noise.
    pairs = (ends[: chains // 2] + ends[chains // 2 :]) / 2 - calm
    shifts = pairs @ gradient
    return float(shifts.mean()), float(shifts.std(ddof=1) / np.sqrt(len(shifts)))


@functools.partial(jax.jit, static_argnames="steps")
def noiseless_td(problem: TDProblem, theta: Array, *, eta: float, steps: int) -> Array:
    """θ after `steps` steps of Eq. 3 without its noise."""
    return lax.fori_loop(0, steps, lambda _, at: at - eta * pseudo_gradient(problem, at), theta)


@functools.partial(jax.jit, static_argnames="steps")
def predicted_effect(problem: TDProblem, theta: Array, grams: Grams, noise: Array, *, eta: float, steps: int) -> Array:
    """∇(mean ∇Q·∇Q') · E ν_k by the recursions at the head of this file: scalar.

    Σ_j = JᵀS_jJ leaves out the part of G that is proportional to the TD errors; the mean's own A has it.
    """
    _, pull_back = jax.vjp(problem.values, theta)

    def curvature(S: Array) -> Array:
        """½ ∇G[JᵀSJ] by Lemma C.1, without its third term: (d,)."""
        weights = S @ grams.K.T  # column i: Σ (g_i - γg'_i) = Jᵀ weights_i

        def add(total: Array, sample) -> tuple[Array, None]:
            row, weight = sample
            return total + hessian_product(problem, theta, row, pull_back(weight)[0]), None

        first = lax.scan(add, jnp.zeros_like(theta), (problem.inputs, weights.T))[0]
        traces = _hessian_traces(problem, theta, S)
        return first + 0.5 * pull_back(traces)[0]

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        S, nu = state
        nu = nu - eta * pseudo_hessian_product(problem, theta, nu) - eta * curvature(S)
        left = S - eta * grams.K @ S
        return (left - eta * left @ grams.K.T + eta**2 * noise, nu), None

    (_, nu), _ = lax.scan(step, (jnp.zeros_like(noise), jnp.zeros_like(theta)), None, length=steps)
    return jax.grad(mean_dot_product, argnums=1)(problem, theta) @ nu


def _hessian_traces(problem: TDProblem, theta: Array, S: Array) -> Array:
    """tr((∇²Q_i - γ∇²Q'_i) JᵀSJ) for every i, from the eigenvectors of S: (n,)."""
    sizes, vectors = jnp.linalg.eigh((S + S.T) / 2)
    _, pull_back = jax.vjp(problem.values, theta)

    def advantage(at: Array) -> Array:
        return problem.values(at) - problem.discounts * problem.next_values(at)

    def second_derivative(vector: Array) -> Array:
        direction = pull_back(vector)[0]

        def slope(at: Array) -> Array:
            return jax.jvp(advantage, (at,), (direction,))[1]

        return jax.jvp(slope, (theta,), (direction,))[1]

    return jax.vmap(second_derivative)(vectors.T).T @ sizes
