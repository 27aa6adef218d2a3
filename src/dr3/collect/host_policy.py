"""A Gaussian policy in numpy, which acts on one observation at a time, and as a small file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.npz import stored_arrays
from dr3.errors import UserError
from dr3.files import written_whole
from dr3.networks import GaussianPolicy
from dr3.networks.gaussian_policy import LARGEST_MEAN, LOG_STD

Floats = NDArray[np.float32]


class HostPolicy:
    """Dense layers with ReLUs between them; the last gives mean and log-std of what tanh squashes. None acts at random.

    A compiled call for one observation costs more than the arithmetic in it.
    """

    def __init__(self, policy: GaussianPolicy | None, size: int, low: float, high: float) -> None:
        layers = () if policy is None else (*policy.trunk.layers().values(), policy.head)
        self.layers = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in layers]
        self.size, self.low, self.high = size, low, high

    @property
    def observed(self) -> int:
        """Numbers in an observation."""
        return len(self.layers[0][0])

    def __call__(self, observation: Floats, noise: np.random.Generator) -> Floats:
        """As it explores: an action drawn from it."""
        if not self.layers:
            return self._fitted(noise.uniform(-1, 1, self.size))
        mean, log_std = np.split(self._last(observation), 2)
        spread = np.exp(np.clip(log_std, *LOG_STD))
        raw = np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN) + spread * noise.standard_normal(self.size)
        return self._fitted(np.tanh(raw))

    def mode(self, observation: Floats) -> Floats:
        """As it does not explore: tanh of the mean."""
        return self._fitted(np.tanh(self._last(observation)[: self.size]))

    def _last(self, x: Floats) -> Floats:
        for weight, bias in self.layers[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        weight, bias = self.layers[-1]
        return x @ weight + bias

    def _fitted(self, unit: NDArray[np.floating]) -> Floats:
        action = 0.5 * (self.high + self.low) + 0.5 * (self.high - self.low) * unit
        return np.clip(action, self.low, self.high).astype(np.float32)


def write_policy(path: Path, policy: HostPolicy) -> None:
    """Weights and biases by the number of their layer, and the bounds of actions: an archive of plain arrays."""
    arrays: dict[str, Any] = {"action_low": np.float32(policy.low), "action_high": np.float32(policy.high)}
    for number, (weight, bias) in enumerate(policy.layers):
        arrays |= {f"layer_{number}_weight": weight, f"layer_{number}_bias": bias}
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_policy(path: Path) -> HostPolicy:
    """What `write_policy` has written; its shapes are checked."""
    stored = stored_arrays(path, "copy it again.")
    count = sum(name.endswith("_weight") for name in stored)
    try:
        layers = [(stored[f"layer_{n}_weight"], stored[f"layer_{n}_bias"]) for n in range(count)]
        low, high = float(stored["action_low"]), float(stored["action_high"])
        wide = [weight.shape[1] for weight, _ in layers]
        fit = all(bias.shape == (width,) for (_, bias), width in zip(layers, wide, strict=True))
        fit &= all(weight.shape[0] == width for (weight, _), width in zip(layers[1:], wide[:-1], strict=True))
        fit &= all(array.dtype == np.float32 and np.isfinite(array).all() for layer in layers for array in layer)
        if not (fit and low < high and wide[-1] % 2 == 0):
            raise ValueError
    except (KeyError, IndexError, ValueError, TypeError):
        raise UserError(f"{path} is no policy of dr3; `dr3 data collect sac … --policy FILE` writes one.") from None
    policy = HostPolicy(None, wide[-1] // 2, low, high)
    policy.layers = layers
    return policy
