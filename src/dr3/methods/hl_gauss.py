"""Values as a classification: cross-entropy to the histogram of a Gaussian (HL-Gauss; Farebrother et al., 2024)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr

from dr3.backup import Backup
from dr3.methods.quantiles import of_actions
from dr3.networks import HistogramCritic

SPREAD = 0.75  # σ in bins, the paper's choice for all of its experiments


def histogram_td(critic: HistogramCritic, backup: Backup) -> Array:
    """-Σ_i p_i log softmax(z(s, a))_i, the mean over the batch; p is `gaussian_histogram` of the backup's target."""
    logits = of_actions(critic.logits(backup.phi), backup.actions)  # (n, m)
    wanted = jax.lax.stop_gradient(gaussian_histogram(backup.targets, critic.edges))
    return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(logits), axis=-1))


def gaussian_histogram(targets: Array, edges: Array) -> Array:
    """The share of N(y, σ²) in every bin, of what lies between the outermost edges: (n,), (m + 1,) -> (n, m).

    A target beyond the edges counts as the edge: the share would be 0/0 far outside.
    """
    width = edges[1] - edges[0]
    inside = jnp.clip(targets, edges[0], edges[-1])
    below = ndtr((edges - inside[:, None]) / (SPREAD * width))
    return jnp.diff(below, axis=-1) / (below[:, -1:] - below[:, :1])
