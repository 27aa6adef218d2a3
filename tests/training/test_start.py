"""Starting from another run's critic."""

from __future__ import annotations

import shutil

import jax
import numpy as np
import pytest

from dr3.errors import UserError
from dr3.methods import DQN, REM
from dr3.regularizers import DR3
from dr3.runs import Runs, digest
from dr3.runs.folder import RunFolder
from dr3.runs.outcomes import RETURN
from dr3.training import train
from dr3.training.start import Start

METHOD = DQN(hidden=(6,), batch_size=8, target_period=3)


@pytest.fixture(scope="module")
def good(logged, tmp_path_factory):
    """A run of two members with a checkpoint every 4 updates."""
    out = tmp_path_factory.mktemp("good") / "run"
    return train(logged, METHOD, steps=8, seeds=2, evaluate_every=4, env=None, out=out, progress=False)


def go_on(logged, good, out, *, steps=4, method=METHOD, place="4:1", **more):
    return train(
        logged, method, steps=steps, env=None, out=out, init_from=f"{good.path}@{place}", progress=False, **more
    )


def same(one, other):
    return all((a == b).all() for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def test_it_starts_from_that_critic_with_a_target_equal_to_it(logged, good, tmp_path):
    runs = go_on(logged, good, tmp_path / "run", regularizer=[None, DR3()], seeds=[5])
    saved = good.critics(4)[1]
    assert all(same(critic, saved) for critic in runs.critics(0))
    assert not same(runs.critics(0)[0], good.critics(4)[0])
    assert not same(runs.critics()[0], saved)
    # The TD error at step 0 is that of the critic against itself as the target.
    values = good.q(logged.observations, logged.actions, member=1, step=4)
    following = np.max(
        [good.q(logged.next_observations, np.full(len(logged), a), member=1, step=4) for a in range(3)], axis=0
    )
    targets = logged.rewards + 0.99 * (1 - logged.terminals) * following
    assert runs.metrics["q/data_mean"][0, 0] == pytest.approx(float(values.mean()), rel=1e-5)
    assert runs.metrics["td/error"][0, 0] == pytest.approx(float(np.mean((values - targets) ** 2)), rel=1e-4)


def test_the_configuration_says_what_it_started_from_and_a_rerun_goes_on(logged, good, tmp_path):
    whole = go_on(logged, good, tmp_path / "whole")
    told = whole.config.init_from
    assert (told.run, told.step, told.member) == (str(good.path), 4, 1)
    assert len(told.fingerprint) == 64
    go_on(logged, good, tmp_path / "parts", steps=2)
    parts = go_on(logged, good, tmp_path / "parts", steps=4)
    assert all(same(*pair) for pair in zip(parts.critics(), whole.critics(), strict=True))
    assert same(Runs(whole.path).critics(0), whole.critics(0))
    assert digest(whole) == digest(go_on(logged, good, tmp_path / "whole"))


def test_the_best_checkpoint_is_the_one_with_the_highest_return(logged, good, tmp_path):
    with pytest.raises(UserError, match="has no checkpoint that was evaluated"):
        Start.read(f"{good.path}@best:0")
    copy = RunFolder(shutil.copytree(good.path, tmp_path / "copy"))
    returns = {0: (9, 0), 4: (3, 2), 8: (3, 5)}  # the untrained policy does not count; of equal ones the earliest
    copy.append(
        copy.evaluations,
        [
            {"step": step, "member": member, "returns": [value], RETURN: value}
            for step, both in returns.items()
            for member, value in enumerate(both)
        ],
    )
    assert [Start.read(f"{copy.path}@best:{member}").step for member in (0, 1)] == [4, 8]


def test_another_start_is_another_run(logged, good, tmp_path):
    go_on(logged, good, tmp_path / "run")
    with pytest.raises(UserError, match=r"holds another run: its init_from.step is 4"):
        go_on(logged, good, tmp_path / "run", place="8:1")
    with pytest.raises(UserError, match=r"holds another run: its init_from.step is 4 and the one asked for is None"):
        train(logged, METHOD, steps=4, env=None, out=tmp_path / "run", progress=False)


def test_a_run_that_moved_is_still_the_same_start(logged, good, tmp_path):
    go_on(logged, good, tmp_path / "run")
    (tmp_path / "moved").symlink_to(good.path)
    again = train(
        logged, METHOD, steps=4, env=None, out=tmp_path / "run", init_from=f"{tmp_path / 'moved'}@4:1", progress=False
    )
    assert again.status["finished"]


@pytest.mark.parametrize(
    ("place", "method", "says"),
    [
        ("4", METHOD, "has 2 members; say which one to start from, as in .*@4:0"),
        ("4:2", METHOD, "there is no member 2"),
        ("5:0", METHOD, "has no checkpoint of step 5"),
        ("last", METHOD, "is written RUN@STEP or RUN@STEP:MEMBER"),
        ("4:0", DQN(hidden=(7,), batch_size=8), r"trunk.stack.0.weight has the shape \(4, 6\), and dqn .* \(4, 7\)"),
        (
            "4:0",
            REM(hidden=(6,), batch_size=8, heads=2),
            r"head.weight has the shape \(6, 3\), and rem here needs \(2, 6, 3\)",
        ),
        ("4:0", DQN(hidden=(6, 6), batch_size=8), "another kind of network than the one dqn"),
    ],
)
def test_what_cannot_be_started_from_is_refused_in_one_sentence(logged, good, tmp_path, place, method, says):
    with pytest.raises(UserError, match=says) as refused:
        go_on(logged, good, tmp_path / "run", place=place, method=method)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run" / "config.json").exists()
