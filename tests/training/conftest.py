from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from dr3.methods import DQN
from dr3.training import train

METHOD = DQN(hidden=(8,), batch_size=8, learning_rate=0.01, target_period=7)


@dataclass(frozen=True)
class Counting:
    """An evaluator whose episodes are the shares of each action that the policy takes on fixed observations."""

    def __call__(self, policy, *, seed: int, step: int, discount: float) -> dict[str, Any]:
        actions = policy(np.random.default_rng(seed).normal(size=(20, 4)).astype(np.float32))
        returns = [float((actions == action).mean()) for action in range(3)]
        return {"returns": returns, "evaluation/return": float(np.mean(returns)), "evaluation/step": float(step)}

    def describe(self) -> dict[str, Any]:
        return {"kind": "counting"}


@pytest.fixture
def method():
    return METHOD


@pytest.fixture
def run(logged):
    """Train a few steps on the shared table; every test compiles the same program."""
    return partial(train, logged, METHOD, steps=60, metrics_every=10, evaluate_every=20, env=Counting(), progress=False)


@pytest.fixture
def save_every_chunk(monkeypatch):
    """States are saved by the clock; here after every chunk."""
    monkeypatch.setattr(import_module("dr3.training.session"), "SECONDS_PER_STATE", -1.0)
