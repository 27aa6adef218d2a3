from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dr3.data import load
from dr3.methods import DQN
from dr3.regularizers import DR3
from dr3.runs import Runs
from dr3.training import train

SOURCE = "grid16smoothobs:size=64"


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A small population on a gridworld: 2 members, checkpoints at 0, 20, 40, 60."""
    method = DQN(hidden=(8, 6), batch_size=16, learning_rate=0.01, target_period=10, discount=0.9)
    out = tmp_path_factory.mktemp("doctor") / "run"
    data = load(SOURCE, discount=method.discount)
    train(data, method, regularizer=[None, DR3(0.1)], steps=60, out=out, evaluate_every=20, progress=False)
    return out


@pytest.fixture
def runs(trained) -> Runs:
    return Runs(trained)


@pytest.fixture
def own_runs(trained, tmp_path) -> Runs:
    """A copy of it that a test may change."""
    return Runs(shutil.copytree(trained, tmp_path / "run"))
