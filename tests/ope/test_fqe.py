"""Fitted Q evaluation: against exact values, and what it says when it has none."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dr3.data import assemble
from dr3.envs import policy_values
from dr3.errors import UserError
from dr3.ope import FQE, evaluate
from dr3.ope.acting import Acting
from dr3.ope.direct import StateTable, solve
from dr3.ope.fqe import completed_returns

# Three states; action 0 stays and earns the state's number, action 1 goes to the next, and from the last it ends.
MOVES, ENDS = np.array([[0, 1], [1, 2], [2, 2]]), np.array([[0, 0], [0, 0], [0, 1]], np.bool_)
P = np.eye(3)[MOVES] * ~ENDS[..., None]
R = np.array([[0.0, 0.5], [1.0, 0.5], [2.0, 4.0]])
SEEN = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], np.float32)
ALL_WAYS = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def log(episodes=8, seed=0):
    """Episodes of random actions from the first state, cut after nine steps."""
    random = np.random.default_rng(seed)
    rows = {name: [] for name in ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")}
    for _ in range(episodes):
        state = 0
        for step in range(9):
            action = int(random.integers(2))
            following, over = MOVES[state, action], ENDS[state, action]
            for name, value in zip(
                rows,
                (SEEN[state], action, R[state, action], SEEN[following], over, not over and step == 8),
                strict=True,
            ):
                rows[name].append(value)
            if over:
                break
            state = following
    return assemble({name: np.array(values) for name, values in rows.items()}, source="chain", name="chain")


def policy(stay):
    """Stays with this probability."""
    return lambda seen: np.tile([stay, 1 - stay], (len(seen), 1))


def exact(stay, discount):
    both = np.tile([stay, 1 - stay], (3, 1))
    return float(policy_values(P, R, both, discount)[0] @ both[0])


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_a_small_table_is_solved_exactly(discount):
    data = log(100)
    found = evaluate({"stays": policy(0.6), "goes": policy(0.4)}, data, discount=discount, fqe=FQE(bootstraps=5))
    # The chain is deterministic and every pair is logged, so the log's own world is the true one.
    table = StateTable.of(data)
    assert table is not None
    assert {tuple(pair) for pair in zip(table.states, data.actions, strict=True)} == set(ALL_WAYS)
    values = [one.estimates["fqe"].estimate for one in found.policies]
    assert values == pytest.approx([exact(0.6, discount), exact(0.4, discount)])
    # An exact critic leaves nothing for weights to correct.
    assert [one.estimates["dr"].estimate for one in found.policies] == pytest.approx(values)


def test_an_action_that_was_never_logged_changes_nothing():
    data = log(30)
    only_stays = data.rows(np.flatnonzero(data.actions == 0)[:5])
    acting = Acting.of({"goes": lambda seen: np.ones(len(seen), np.int32)}, only_stays)
    table = StateTable.of(only_stays)
    assert table is not None
    values, q = solve(table, only_stays, table.policy(acting, 0), 0.9, np.ones(len(only_stays)))
    # Every logged step stayed, and earned the state's number: so does an action that leads back there, for ever.
    earned = {tuple(seen): reward for seen, reward in zip(SEEN.tolist(), R[:, 0], strict=True)}
    rewards = np.zeros(table.count)
    rewards[table.states] = [earned[tuple(seen)] for seen in only_stays.observations.tolist()]
    assert values == pytest.approx(rewards / (1 - 0.9))
    assert q[:, 1] == pytest.approx(values)


@pytest.fixture(scope="module")
def networks():
    return FQE(networks=2, hidden=(16,), batch_size=32, updates_per_copy=20, learning_rate=5e-3, most_horizons=8)


@pytest.mark.slow
def test_networks_find_the_same(networks, monkeypatch):
    monkeypatch.setattr(StateTable, "of", classmethod(lambda cls, data: None))
    data = log(30)
    policies = {"stays": policy(0.8), "goes": lambda seen: np.ones(len(seen), np.int32)}
    acting = Acting.of(policies, data)
    assert acting.following.shape == (len(data), 2, 2)
    fit = networks(acting, data, 0.8)
    assert fit.reasons == (None, None)
    assert fit.values == pytest.approx([exact(0.8, 0.8), exact(0.0, 0.8)], rel=0.06)
    v = fit.v[data.observations.tolist().index([1.0, 0.0])]
    assert v == pytest.approx(fit.values, rel=0.06)


@pytest.mark.slow
def test_what_still_moves_has_no_value(networks, monkeypatch):
    monkeypatch.setattr(StateTable, "of", classmethod(lambda cls, data: None))
    hasty = FQE(networks=2, hidden=(16,), batch_size=32, least_horizons=1, most_horizons=1, updates_per_copy=1)
    data = log(5)
    found = evaluate({"goes": policy(0.0)}, data, discount=0.8, fqe=hasty)
    assert np.isnan(found.policies[0].estimates["fqe"].estimate)
    assert "not converged" in found.policies[0].reasons["fqe"]
    assert "dr" not in found.policies[0].estimates


@pytest.mark.slow
def test_what_moves_only_because_it_learns_slowly_has_no_value(monkeypatch):
    """It stands nearly still, far from where it would stay: the policy goes at once, and the log lingers."""
    monkeypatch.setattr(StateTable, "of", classmethod(lambda cls, data: None))
    slow = FQE(networks=2, hidden=(16,), batch_size=32, updates_per_copy=1, learning_rate=1e-5)
    found = evaluate({"goes": policy(0.0)}, log(5), discount=0.8, fqe=slow).policies[0]
    assert np.isnan(found.estimates["fqe"].estimate)
    assert "by its Bellman errors it is" in found.reasons["fqe"]


def test_what_policies_do_at_s_prime_is_what_they_do_at_the_next_row():
    data = log(3)
    asked = []

    def watched(seen):
        asked.append(len(seen))
        return (seen[:, 0] > 0).astype(np.int32)

    acting = Acting.of({"one": watched}, data)
    assert acting.following[:, 0].tolist() == (np.asarray(data.next_observations)[:, 0] > 0).astype(int).tolist()
    assert sum(asked) == len(data) + 3


@pytest.mark.parametrize("said", [lambda s: np.full(len(s), 2), lambda s: np.full((len(s), 2), 0.7), lambda s: s])
def test_what_is_no_policy_is_refused(said):
    with pytest.raises(UserError, match="The policy odd must answer"):
        Acting.of({"odd": said}, log(2))


def test_the_logged_policy_is_the_bar_and_told_from_itself_by_nothing():
    data = log(40)
    found = evaluate({"as logged": policy(0.5)}, data, discount=0.9, fqe=FQE(bootstraps=20))
    one = found.policies[0]
    assert found.logged.lower < exact(0.5, 0.9) < found.logged.upper
    assert one.gain.lower < 0 < one.gain.upper
    assert one.overlap > 0.8
    assert one.effective_episodes > 10
    record = found.to_json()
    assert record["policies"][0]["fqe"][0] == one.estimates["fqe"].estimate
    assert record["behavior"] == "how often each action was logged in a state"


def test_weights_that_rest_on_few_episodes_have_no_value():
    found = evaluate({"one": policy(0.5)}, log(5), discount=0.9, fqe=FQE(bootstraps=5)).policies[0]
    assert set(found.reasons) == {"dr", "wis", "is"}
    assert "counts as" in found.reasons["is"]
    assert list(found.estimates) == ["fqe"]


def test_logged_propensities_are_used():
    data = dataclasses.replace(log(20), propensities=np.full(len(log(20)), 0.25, np.float32))
    found = evaluate({"one": policy(0.25)}, data, discount=0.9, fqe=FQE(bootstraps=5))
    assert found.behavior == "propensities in the log"


def test_a_value_far_beyond_the_logged_episodes_is_none():
    columns = {
        "observations": np.zeros((4, 1), np.float32),
        "next_observations": np.zeros((4, 1), np.float32),
        "actions": np.array([0, 1, 0, 1]),
        "rewards": np.array([1.0, 2.0, 3.0, 1.0], np.float32),
        "terminals": np.array([False, True, False, False]),
        "timeouts": np.array([False, False, False, True]),
    }
    worth = completed_returns(assemble(columns, source="two", name="two"), 0.5)
    # 1 + ½ 2 ends; 3 + ½ 1 was cut, and its mean of 2 goes on: ¼ 2 / (1 - ½) more.
    np.testing.assert_allclose(worth, [2.0, 4.5])
    # The mean is 3.25; twice as far as the best is 5.75, and as far as from 0 is 6.5 above it.
    assert FQE()._beyond(6.4, worth) is None
    assert FQE()._beyond(0.1, worth) is None
    assert (
        FQE()._beyond(6.6, worth)
        == "6.6 is beyond what the log shows, whose episodes are worth 2 to 4.5, 3.25 on average"
    )
    assert FQE()._beyond(-0.1, worth) is not None
    assert FQE(reach=3.0)._beyond(6.9, worth) is None
