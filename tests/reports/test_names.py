from __future__ import annotations

import pytest

from dr3.reports.names import algorithm_name, world_name


@pytest.mark.parametrize(
    ("word", "spoken"),
    [
        ("cql", "CQL"),
        ("continuous-cql+dr3:0.03", "CQL + DR3 0.03"),
        ("td3-bc", "TD3+BC"),
        ("dqn+dr3:0.03+beer:0.001", "DQN + DR3 0.03 + BEER 0.001"),
        ("rem+norm:0.01", "REM + feature norm 0.01"),
        ("mine+dr3:0.1", "mine + DR3 0.1"),
    ],
)
def test_algorithms_are_called_as_people_call_them(word, spoken):
    assert algorithm_name(word) == spoken


@pytest.mark.parametrize(
    ("word", "spoken"),
    [("minatar/space_invaders", "Space Invaders"), ("walker2d", "Walker2d"), ("asterix 1%", "Asterix 1%")],
)
def test_worlds_are_called_as_people_call_them(word, spoken):
    assert world_name(word) == spoken
