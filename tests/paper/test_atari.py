from __future__ import annotations

from typing import Any

import pytest

from dr3.errors import UserError
from dr3.methods import CQL, DQN, REM
from dr3.paper import atari
from dr3.regularizers import DR3

SHARED: dict[str, Any] = {
    "discount": 0.99,
    "learning_rate": 5e-5,
    "adam_epsilon": 3.125e-4,
    "batch_size": 32,
    "target_period": 2000,
    "network": "nature",
    "hidden": (512,),
    "error": "huber",
}


@pytest.mark.parametrize("data", ["1%", "5%", "first-10%"])
def test_the_papers_agents(data):
    alpha = {"1%": 1.0, "5%": 0.1, "first-10%": 0.1}[data]
    assert atari("cql", data, dr3=True) == (CQL(alpha=alpha, **SHARED), DR3(0.03))
    assert atari("rem", data, dr3=True) == (REM(heads=200, **SHARED), DR3(0.001))
    assert atari("dqn", data, dr3=False) == (DQN(**SHARED), None)


def test_what_the_paper_does_not_have_is_refused():
    with pytest.raises(UserError, match="data sets are 1%, 5%, first-10%; there is no '20%'"):
        atari("cql", "20%", dr3=True)  # ty: ignore[invalid-argument-type]
    with pytest.raises(UserError, match="methods are dqn, rem, cql; there is no 'sarsa'"):
        atari("sarsa", "1%", dr3=True)  # ty: ignore[invalid-argument-type]
