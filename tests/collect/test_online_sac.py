from __future__ import annotations

import signal
import sys
from typing import Any

import gymnasium
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.cli import invoke
from dr3.collect import online_sac as collecting
from dr3.collect.cuts import Snapshots
from dr3.collect.host_policy import HostPolicy, read_policy, write_policy
from dr3.collect.online_sac import SACSchedule, collect_sac
from dr3.data import load
from dr3.errors import UserError
from dr3.methods import SAC
from dr3.networks import GaussianPolicy

METHOD = SAC(hidden=(16,), policy_hidden=(16,), batch_size=16, learning_rate=0.01, policy_learning_rate=0.01)
SCHEDULE = SACSchedule(warmup=40, block=7)
LIMIT = 9


class Line(gymnasium.Env):
    """A point on a line between -3 and 3 that moves by half the action, earns its place, and falls off the left end."""

    observation_space = gymnasium.spaces.Box(-3, 3, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-2, 0))
        return np.array([self.place]), {}

    def step(self, action):
        self.place = min(self.place + float(action[0]) / 2, 3.0)
        return np.array([self.place]), self.place, self.place < -3, False, {}


@pytest.fixture(scope="module", autouse=True)
def registered():
    gymnasium.register("dr3-test/Line-v0", entry_point=lambda **_: Line(), max_episode_steps=LIMIT)
    yield
    del gymnasium.registry["dr3-test/Line-v0"]


ASK: Any = {"steps": 400, "method": METHOD, "schedule": SCHEDULE, "cut_steps": 30, "progress": False}
CUTS = ("random", "medium", "medium-replay", "medium-expert")


@pytest.fixture(scope="module")
def collected(registered, tmp_path_factory):
    out = tmp_path_factory.mktemp("replay") / "line.hdf5"
    kept = out.with_name("policy.npz")
    return collect_sac("dr3-test/Line-v0", out=out, cuts=CUTS, policy=kept, **ASK), out


def test_every_row_is_a_step_of_the_world(collected):
    data, out = collected
    assert load(out).fingerprint() == data.fingerprint()
    assert data.world == "dr3-test/Line-v0"
    assert (data.action_space.low, data.action_space.high) == (-2, 2)
    after = np.minimum(data.observations[:, 0] + data.actions[:, 0] / 2, 3)
    np.testing.assert_allclose(data.next_observations[:, 0], after, atol=1e-6)
    np.testing.assert_allclose(data.rewards, after, atol=1e-6)
    np.testing.assert_array_equal(data.terminals, after < -3)
    inside = np.flatnonzero(data.episodes[1:] == data.episodes[:-1])
    np.testing.assert_array_equal(data.next_observations[inside], data.observations[inside + 1])


def test_a_time_limit_is_no_terminal(collected):
    data, _ = collected
    lengths = np.bincount(data.episodes)
    ends = np.flatnonzero(np.append(data.episodes[1:] != data.episodes[:-1], True))
    full = ends[(lengths == LIMIT) & ~data.terminals[ends]]
    assert len(full) > 10
    assert data.timeouts[full].all()
    assert lengths.max() == LIMIT
    assert len(data) == 400
    assert (data.terminals | data.timeouts).sum() == len(ends)


def test_it_learns_to_go_right(collected):
    data, _ = collected
    assert data.rewards[-90:].mean() > data.rewards[:90].mean() + 1


def test_cuts_are_of_the_kind_they_say(collected):
    data, out = collected
    cuts = {cut: load(out.with_name(f"line-{cut}.hdf5")) for cut in CUTS}
    assert [len(cuts[cut]) for cut in ("random", "medium", "medium-expert")] == [30, 30, 30]
    replay = cuts["medium-replay"]
    assert 0 < len(replay) < 400
    np.testing.assert_array_equal(replay.observations, data.observations[: len(replay)])
    both = cuts["medium-expert"].rewards
    assert both[15:].mean() > cuts["random"].rewards.mean()
    assert cuts["medium-expert"].timeouts[14] or cuts["medium-expert"].terminals[14]


@pytest.mark.parametrize("cut", ["", *(f"-{cut}" for cut in CUTS)])
def test_the_files_are_in_d4rls_layout(collected, cut):
    path = collected[1].with_name(f"line{cut}.hdf5")
    data = load(path)
    with h5py.File(path) as file:
        stored = {name: column[()] for name, column in file.items()}
    rows = len(data)
    layout = {name: (stored[name].dtype.name, stored[name].shape) for name in stored if np.ndim(stored[name])}
    assert (
        layout.items()
        >= {
            "observations": ("float32", (rows, 1)),
            "actions": ("float32", (rows, 1)),
            "rewards": ("float32", (rows,)),
            "terminals": ("bool", (rows,)),
            "timeouts": ("bool", (rows,)),
            "next_observations": ("float32", (rows, 1)),
        }.items()
    )
    # What D4RL's qlearning_dataset makes of it, by its own loop: the same steps, but none of those that were cut.
    keep = [row for row in range(rows - 1) if not stored["timeouts"][row]]
    same = np.flatnonzero(~data.timeouts[:-1])
    np.testing.assert_array_equal(keep, same)
    for name in ("observations", "actions", "rewards", "terminals"):
        np.testing.assert_array_equal(stored[name][keep], getattr(data, name)[same])
    going_on = same[~data.terminals[same]]
    np.testing.assert_array_equal(stored["observations"][going_on + 1], data.next_observations[going_on])


def test_a_cut_that_is_there_is_not_taken_for_its_own(tmp_path):
    (tmp_path / "line-medium.hdf5").write_bytes(b"another")
    with pytest.raises(UserError, match=r"line-medium\.hdf5 is there already"):
        collect_sac("dr3-test/Line-v0", out=tmp_path / "line.hdf5", cuts=("medium",), **ASK)


def test_medium_is_a_third_of_the_way():
    taken = Snapshots(np.zeros((4, 1), np.float32), np.array([10, 20, 30, 40]), np.array([0.0, 10, 40, 90]))
    assert taken.medium() == 2
    assert taken._replace(returns=np.array([0.0, 31, 40, 90])).medium() == 1
    assert taken._replace(returns=np.full(4, np.nan)).medium() == 3  # no episode has ended yet: the last one


def test_going_on_after_a_stop_gives_the_same_file(collected, tmp_path, monkeypatch):
    out = tmp_path / "line.npz"
    real = collecting.learn

    def interrupted(*arguments):
        if int(arguments[5]) > 200:
            monkeypatch.setattr(collecting, "learn", real)
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(collecting, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect_sac("dr3-test/Line-v0", out=out, **ASK)
    assert not out.exists()
    with pytest.raises(UserError, match="unfinished collection with another seed"):
        collect_sac("dr3-test/Line-v0", out=out, **ASK, seed=1)
    assert collect_sac("dr3-test/Line-v0", out=out, **ASK).fingerprint() == collected[0].fingerprint()
    assert [file.name for file in tmp_path.iterdir()] == ["line.npz"]
    with pytest.raises(UserError, match="is there already"):
        collect_sac("dr3-test/Line-v0", out=out, **ASK)


def test_the_policy_on_the_host_is_the_policy():
    policy = jax.jit(lambda key: GaussianPolicy.create((3,), 2, (8,), key=key))(jax.random.key(0))
    policy = jax.tree.map(lambda leaf: 30 * leaf, policy)  # far from its start, where everything is near 0
    observation = np.array([0.3, -1.0, 2.0], np.float32)
    told = policy(jnp.asarray(observation)[None])
    noise = np.random.default_rng(5).standard_normal(2)
    unit = np.tanh(np.asarray(told.mean[0]) + np.exp(np.asarray(told.log_std[0])) * noise)
    acted = HostPolicy(policy, 2, -1.0, 5.0)(observation, np.random.default_rng(5))
    np.testing.assert_allclose(acted, 2 + 3 * unit, rtol=1e-4)


def test_the_last_policy_is_kept_as_a_file(collected, tmp_path):
    """It is the one that the expert's rows are from, and comes back to the bit."""
    kept = collected[1].with_name("policy.npz")
    policy = read_policy(kept)
    assert (policy.observed, policy.size, policy.low, policy.high) == (1, 1, -2.0, 2.0)
    assert [weight.shape for weight, _ in policy.layers] == [(1, 16), (16, 2)]
    place = np.array([0.5], np.float32)
    (first, one), (second, two) = policy.layers
    mean = (np.maximum(place @ first + one, 0) @ second + two)[0]
    np.testing.assert_allclose(policy.mode(place), 2 * np.tanh(mean), rtol=1e-6)
    expert = load(collected[1].with_name("line-medium-expert.hdf5"))
    row = len(expert) // 2  # where the expert begins
    noise = np.random.default_rng((0, 2, 30_000_000))
    np.testing.assert_array_equal(policy(expert.observations[row], noise), expert.actions[row])
    write_policy(tmp_path / "again.npz", policy)
    assert (tmp_path / "again.npz").read_bytes() == kept.read_bytes()


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.zeros(3)},
        {"layer_0_weight": np.zeros((2, 3), np.float32), "action_low": np.float32(-1), "action_high": np.float32(1)},
        {
            "layer_0_weight": np.full((2, 4), np.nan, np.float32),
            "layer_0_bias": np.zeros(4, np.float32),
            "action_low": np.float32(-1),
            "action_high": np.float32(1),
        },
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path, arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError, match="is no policy of dr3"):
        read_policy(tmp_path / "x.npz")


def test_a_name_without_a_format_is_refused_before_anything_is_done(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"data is written as \.npz or \.hdf5"):
        collect_sac("dr3-test/Line-v0", out=tmp_path / "line.csv", **ASK)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UserError, match="needs h5py"):
        collect_sac("dr3-test/Line-v0", out=tmp_path / "line.hdf5", **ASK)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("env", "sentence"),
    [("CartPole-v1", "has no continuous actions"), ("NoSuchThing-v0", "There is no world 'NoSuchThing-v0'")],
)
def test_worlds_that_cannot_be_are_refused(tmp_path, env, sentence, capsys):
    assert invoke(["data", "collect", "sac", "--env", env, "--out", str(tmp_path / "x.npz")]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
