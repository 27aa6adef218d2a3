from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.data import load
from dr3.errors import UserError

pytest.importorskip("gymnasium_robotics")
from dr3.collect import kitchen as collection
from dr3.collect.kitchen import collect_kitchen
from dr3.collect.kitchen_arm import Arm
from dr3.collect.kitchen_skills import DEMONSTRATIONS, SKILLS, act, do, order
from dr3.envs.kitchen import KITCHEN_TASKS, KitchenWorld


@pytest.fixture(scope="module")
def kitchen():
    world = KitchenWorld("complete")
    yield world
    world.close()


@pytest.fixture
def small(monkeypatch):
    """Demonstrations that are over after three steps."""
    monkeypatch.setattr("dr3.collect.kitchen_acting.do", _three_steps)


def _three_steps(arm, tasks, random, tried):
    tried.append(tasks[0])
    yield from 3 * [np.full(9, 0.5)]


def collect_little(out: Path, seed: int = 0, kind="mixed"):
    return collect_kitchen(kind, out=out, episodes=3, seed=seed, workers=1, progress=False)


def test_the_hand_goes_where_it_is_asked_and_stays_level(kitchen) -> None:
    kitchen.reset(seed=0)
    arm = Arm(kitchen)
    target = arm.hand + np.array([0.1, 0.1, 0.1])
    for _ in range(15):
        kitchen.step(arm.towards(target, fingers=1.0, speed=0.1, twist=0.5))
    np.testing.assert_allclose(arm.hand, target, atol=0.02)
    assert arm.twist == pytest.approx(0.5, abs=0.1)
    ahead = kitchen.simulator.data.site("end_effector").xmat.reshape(3, 3)[:, 2]
    np.testing.assert_allclose(ahead, [0, 1, 0], atol=0.1)  # it points to the wall


def test_a_joint_at_its_limit_is_left_out_and_the_others_make_up_for_it(kitchen) -> None:
    kitchen.reset(seed=0)
    arm = Arm(kitchen)
    second = arm.model.jnt_range[1, 0]
    assert arm.data.qpos[1] == pytest.approx(second, abs=0.02)  # that is where it begins
    down = arm.towards(arm.hand - np.array([0.0, 0.0, 0.1]), fingers=0.0, speed=0.1)
    assert down[1] >= 0
    assert np.abs(down).max() <= 1


@pytest.mark.slow
def test_the_microwave_opens_and_the_rest_stays_as_it_is(kitchen) -> None:
    kitchen.reset(seed=0)
    random, tried = np.random.default_rng(0), []
    script = do(Arm(kitchen), ("microwave",), random, tried)
    before = {task: kitchen.away(task) for task in SKILLS}
    for _ in range(200):
        if (action := act(script, random)) is None:
            break
        kitchen.step(action)
    assert tried == ["microwave"]
    assert kitchen.done("microwave")
    for task in set(SKILLS) - {"microwave"}:
        assert kitchen.away(task) == pytest.approx(before[task], abs=0.02)


def test_orders_of_the_three_kinds() -> None:
    random = np.random.default_rng(0)
    whole = {kind: tuple(task for task in SKILLS if task in KITCHEN_TASKS[kind]) for kind in DEMONSTRATIONS}
    drawn = {kind: [order(kind, random) for _ in range(300)] for kind in DEMONSTRATIONS}
    assert set(drawn["complete"]) == {whole["complete"]}
    assert len(set(drawn["partial"])) == len(set(drawn["mixed"])) + 1 == 15
    assert drawn["partial"].count(whole["partial"]) == pytest.approx(60, abs=20)
    assert whole["mixed"] not in drawn["mixed"]
    names = list(SKILLS)
    for kind in DEMONSTRATIONS:
        for four in drawn[kind]:
            assert sorted(four, key=names.index) == list(four)
            assert len(set(four)) == 4


def test_actions_are_noisy_and_clipped_until_the_script_is_over() -> None:
    random = np.random.default_rng(0)
    script = iter([np.zeros(9), np.full(9, 5.0)])
    first = act(script, random)
    assert first is not None
    assert first.dtype == np.float32
    assert 0 < np.abs(first).max() < 0.5
    second = act(script, random)
    assert second is not None
    np.testing.assert_allclose(second, 0.95)
    assert act(script, random) is None


@pytest.mark.usefixtures("small")
def test_a_file_in_d4rls_layout_and_what_the_scripts_came_to(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    came_to = collect_little(tmp_path / "mixed.hdf5")
    data = load(tmp_path / "mixed.hdf5")
    assert data.observations.shape == (9, 60)
    assert data.actions.shape == (9, 9)
    assert data.timeouts.tolist() == [False, False, True] * 3
    assert not data.terminals.any()
    assert data.world == "kitchen/mixed"
    np.testing.assert_array_equal(data.next_observations[0], data.observations[1])
    with h5py.File(tmp_path / "mixed.hdf5") as file:
        assert {"observations", "actions", "rewards", "terminals", "timeouts"} <= set(file)
    kept = json.loads((tmp_path / "mixed.success.json").read_text())
    assert kept["episodes"] == came_to.episodes == 3
    assert sum(one["episodes"] for one in kept["measured"]) == 3
    assert not any(one["successes"] for one in kept["measured"])  # nothing is done in three steps
    assert list(tmp_path.glob("*.unfinished")) == []
    with pytest.raises(UserError, match="is there already"):
        collect_little(tmp_path / "mixed.hdf5")


@pytest.mark.usefixtures("small")
def test_stopped_and_gone_on_it_ends_with_the_same_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(collection, "EPISODES_PER_PART", 1)
    collect_little(tmp_path / "whole.npz")
    acted, act_part = [], collection.act_part

    def act_one_part(part):
        if acted:
            raise KeyboardInterrupt
        acted.append(part)
        return act_part(part)

    monkeypatch.setattr(collection, "act_part", act_one_part)
    with pytest.raises(KeyboardInterrupt):
        collect_little(tmp_path / "stopped.npz")
    with pytest.raises(UserError, match="with another seed"):
        collect_little(tmp_path / "stopped.npz", seed=1)
    monkeypatch.setattr(collection, "act_part", act_part)
    collect_little(tmp_path / "stopped.npz")
    assert load(tmp_path / "whole.npz").fingerprint() == load(tmp_path / "stopped.npz").fingerprint()


@pytest.mark.usefixtures("small")
def test_the_command_prints_success_rates(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--demonstrations", "complete", "--episodes", "1", "--workers", "1"]
    assert invoke(["data", "collect", "kitchen", *words]) == 0
    said = capsys.readouterr().out
    assert "microwave: 0 of 1 episodes (0%)" in said
    assert "the whole task: 0 of 1" in said
    assert "3 steps in 1 episodes are in kitchen-complete-0.npz" in said


@pytest.mark.parametrize(("change", "message"), [({"kind": "all"}, "no demonstrations 'all'"), ({"seed": -1}, "seed")])
def test_mistakes_are_said_before_anything_is_acted(tmp_path, change, message) -> None:
    with pytest.raises(UserError, match=message):
        collect_little(tmp_path / "file.npz", **change)
