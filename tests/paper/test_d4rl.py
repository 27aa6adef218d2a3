from __future__ import annotations

import pytest

from dr3.errors import UserError
from dr3.paper import d4rl_brac, d4rl_cql


@pytest.mark.parametrize(
    ("domain", "c0", "scale", "lagrange"),
    [("antmaze", 0.001, 4.0, 5.0), ("kitchen", 1.0, 1.0, None), ("mujoco", 0.01, 1.0, None)],
)
def test_cql_has_the_papers_numbers(domain, c0, scale, lagrange):
    method, regularizer = d4rl_cql(domain, dr3=True)
    assert regularizer is not None
    assert regularizer.coefficient == c0
    assert (method.alpha, method.hidden, method.learning_rate) == (5.0, (256, 256, 256, 256), 3e-4)
    assert (method.policy_learning_rate, method.warm_start) == (1e-4, 40_000)
    assert (method.reward_scale, method.lagrange) == (scale, lagrange)
    assert scale * (1 + method.reward_shift) == (2 if domain == "antmaze" else 1)
    assert d4rl_cql(domain, dr3=False) == (method, None)


def test_brac_and_what_there_is_not():
    method, regularizer = d4rl_brac(dr3=True)
    assert (method.form, method.behavior_weight, method.entropy_weight) == ("paper", 0.1, 0.1)
    assert regularizer is not None
    with pytest.raises(UserError, match="there is no 'adroit'"):
        d4rl_cql("adroit", dr3=False)  # ty: ignore[invalid-argument-type]
