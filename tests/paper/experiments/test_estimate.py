"""The estimate of compute: every kind of update once, with all its updates."""

from __future__ import annotations

import pytest

from dr3.data import DiscreteActions
from dr3.methods import DQN, Spec
from dr3.paper.experiments import estimate
from dr3.regularizers import DR3
from dr3.sweeps import Preparation, Task


def test_updates_of_one_kind_are_counted_together(monkeypatch):
    pytest.importorskip("pgx")
    monkeypatch.setattr(estimate, "speed", lambda kind: 10.0 if kind.regularizer is None else 5.0)
    made = Preparation("data/breakout.npz", len, {"env": "minatar/breakout"})
    method = DQN(hidden=(8,))
    jobs = [
        made,
        Task("data/breakout.npz:replay=1%", method, seeds=(0, 1), steps=100, needs=(made.name,)),
        Task("data/breakout.npz:replay=5%", method, seeds=(0,), steps=50, needs=(made.name,)),
        Task("grid16smoothobs", method, (DR3(0.1),), steps=36_000),
        Task("data/dqn-replay/Pong/1/replay_logs:replay=1%", method, steps=7),
    ]
    costs = estimate.estimate(jobs)
    assert [cost.updates for cost in costs] == [250, 36_000, 7]
    assert [cost.kind.spec.observation_shape for cost in costs] == [(10, 10, 4), (16,), (84, 84, 4)]
    assert costs[1].hours == 2.0


def test_a_speed_is_measured(monkeypatch):
    monkeypatch.setattr(estimate, "SECONDS", 0.0)
    kind = estimate.Kind(DQN(hidden=(4,), batch_size=4), None, Spec((3,), DiscreteActions(2)))
    assert estimate.speed(kind) > 0
