"""What is measured of a critic while it trains, on a fixed probe set."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dr3.backup import Backup
from dr3.data.batch import Batch
from dr3.data.transitions import Transitions
from dr3.instruments import cosine, dot_product, norm, srank, td_error
from dr3.methods import Method, objective
from dr3.methods.base import trained_part
from dr3.networks.dormant import dormant_units, hidden_outputs
from dr3.optimization import gradient_length
from dr3.regularizers import Regularizer, Remembering, remembered
from dr3.training.loop import Progress, stream

PROBE_SIZE = 512  # no rank can exceed it; larger costs time at every measurement
DORMANT = 0.025  # of its layer's mean size: at most that, and a unit says nothing (Sokar et al., 2023)


def probe_of(data: Transitions, size: int = PROBE_SIZE) -> Transitions:
    """The rows that critics are measured on: all of a small table, a fixed sample of a larger one."""
    if len(data) <= size:
        return data
    return data.rows(np.sort(np.random.default_rng(0).choice(len(data), size, replace=False)))


def noise_of(seed: int, step: Any) -> jax.Array:
    """The key with which a critic is measured at a step: while it trains, and when its checkpoint is looked at."""
    return jax.random.fold_in(stream(seed, 3), step)


def measure(
    method: Method, regularizer: Regularizer | None, seed: int, progress: Progress, probe: Batch, initial: Any
) -> dict[str, float]:
    """All metrics of one member, by slash-separated name; every one a function of its weights and the probe set.

    A member on its way to divergence may have weights that are finite and features that are not; so is the metric then.

    Args:
        method: Its method.
        regularizer: Its regularizer.
        seed: Its seed.
        progress: Where it stands.
        probe: The rows that it is measured on.
        initial: Its critic before the first update.
    """
    loss, backup, info = _on_probe(method, regularizer, seed, progress, probe)
    weights = _of_weights(method, progress, probe, initial)
    # In float64 on the host: the definitions are shared with instruments that work on plain arrays.
    arrays: Any = jax.tree.map(lambda column: np.asarray(column, np.float64), backup)
    sides = (arrays.phi, arrays.phi_next, arrays.bootstraps)
    with np.errstate(over="ignore", invalid="ignore"):
        return {
            "losses/total": float(loss),
            **{name: float(value) for name, value in info.items()},
            "td/error": td_error(arrays.values, arrays.targets),
            "q/data_mean": float(arrays.values.mean()),
            "q/target_mean": float(arrays.targets.mean()),
            "features/dot_product": float(dot_product(*sides)),
            "features/cosine": float(cosine(*sides)),
            "features/norm": float(norm(arrays.phi).mean()),
            "features/norm_next": float(norm(arrays.phi_next).mean()),
            "features/srank": float(np.mean([srank(phi) for phi in arrays.phi.reshape(-1, *arrays.phi.shape[-2:])])),
            **{name: float(value) for name, value in weights.items()},
        }


@jax.jit
def _on_probe(
    method: Method, regularizer: Regularizer | None, seed: int, progress: Progress, probe: Batch
) -> tuple[Any, Backup, dict[str, Any]]:
    model, key = method.model(progress.learner), noise_of(seed, progress.step)
    term = regularizer
    if regularizer is not None and remembered(regularizer):
        term = Remembering(regularizer, progress.memory)
    loss, (backup, info) = objective(method, term, model, progress.learner, probe, key)
    return loss, backup, info


@jax.jit
def _of_weights(method: Method, progress: Progress, probe: Batch, initial: Any) -> dict[str, jax.Array]:
    """How long gradients are, how far the critic is from where it began, and which of its units sleep."""
    model = method.model(progress.learner)
    now, then = (_floats(trained_part(of)) for of in (model, initial))
    squares = (jnp.sum((a - b) ** 2) for a, b in zip(now, then, strict=True))
    found = {"weights/distance": jnp.sqrt(sum(squares, start=jnp.zeros(())))}
    if (length := gradient_length(getattr(progress.learner, "optimizer", ()))) is not None:
        found["gradients/norm"] = length
    each = hidden_outputs(model, probe.observations, probe.actions)
    for name in each[0] if each else ():
        asleep = jnp.stack([dormant_units(outputs[name], DORMANT) for outputs in each])
        found[f"dormant/{name}"] = asleep.mean()
    return found


def _floats(tree: Any) -> list[jax.Array]:
    return jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))
