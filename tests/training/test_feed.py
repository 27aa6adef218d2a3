"""A table that is streamed from the host trains bit for bit as one that is on the device."""

from __future__ import annotations

import dataclasses
import signal
from importlib import import_module
from typing import Any

import jax
import numpy as np
import pytest

from dr3.cli import invoke as command
from dr3.data import Frames, read_dqn_replay, write_dqn_replay
from dr3.data.batch import Batch
from dr3.errors import UserError
from dr3.methods import DQN, METHODS
from dr3.methods.continuous import ContinuousMethod
from dr3.regularizers import DR3
from dr3.runs import digest
from dr3.runs.member import population
from dr3.training import train
from dr3.training.feed import Feed, place_of, rows_of_steps
from dr3.training.loop import Block, draw_rows

SMALL: dict[str, Any] = {"hidden": (8,), "batch_size": 8, "learning_rate": 0.01}


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    """Blocks of seven steps: shorter than a chunk, and no divisor of any cadence."""
    monkeypatch.setattr(import_module("dr3.training.feed"), "BLOCK_STEPS", 7)


@pytest.fixture
def replay(tmp_path):
    """A folder of DQN-replay files: 90 steps of 12 x 12 frames in four episodes."""
    random = np.random.default_rng(0)
    terminals = np.zeros(90, np.bool_)
    terminals[[20, 41, 66]] = True
    write_dqn_replay(
        tmp_path / "replay",
        frames=random.integers(0, 256, (90, 12, 12)).astype(np.uint8),
        actions=random.integers(3, size=90),
        rewards=random.normal(size=90).astype(np.float32),
        terminals=terminals,
        rows_per_file=40,
    )
    return tmp_path / "replay"


def test_rows_drawn_for_a_block_are_those_of_its_steps():
    block = rows_of_steps(seed=3, first=1000, count=5, batch_size=4, rows=50_000_000)
    for place, step in enumerate(range(1000, 1005)):
        np.testing.assert_array_equal(block[place], draw_rows(3, step, 4, 50_000_000))
    assert len(np.unique(block)) > 15


def test_a_population_is_the_same_streamed_and_resident(run, tmp_path):
    options: Any = {"regularizer": [None, DR3(0.1)], "seeds": 2, "steps": 40}
    resident = run(out=tmp_path / "device", data_on="device", **options)
    streamed = run(out=tmp_path / "host", data_on="host", **options)
    assert digest(streamed) == digest(resident)
    assert streamed.config == resident.config
    assert '"data_on": "host"' in streamed.folder.environment.read_text()
    # Going on where the other left off is no other run.
    assert digest(run(out=tmp_path / "host", data_on="device", **{**options, "steps": 60})) == digest(
        run(out=tmp_path / "device", data_on="host", **{**options, "steps": 60})
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gets_the_same_batches(name, logged, logged_continuous, logged_pictures):
    """SARSA has rows of its own, TD a column: what a block holds is what the resident table would give."""
    method = METHODS[name](batch_size=8)
    continuous = logged_pictures if getattr(method, "crop", 0) else logged_continuous
    data = continuous if isinstance(method, ContinuousMethod) else logged
    members = population(method, None, [5])
    with Feed(members, data, "host") as feed:
        block, later = feed.at(0, 0), feed.at(0, 20)
    assert isinstance(block, Block)
    assert isinstance(later, Block)
    assert (int(block.first), int(later.first)) == (0, 14)
    table = Batch.of(method.prepare(data))
    for source, step in ((block, 0), (block, 6), (later, 17)):
        expected = table.take(draw_rows(5, step, 8, len(table.rewards)))
        found = jax.tree.map(lambda column, at=step - int(source.first): column[at], source.batches)
        jax.tree.map(np.testing.assert_array_equal, found, expected)
        assert jax.tree.map(lambda column: column.dtype, found) == jax.tree.map(lambda column: column.dtype, expected)


def test_stacks_of_memory_mapped_frames_stream(replay, tmp_path):
    data = read_dqn_replay(replay, num_actions=3)
    assert isinstance(data.observations, Frames)
    assert isinstance(data.observations.stored, np.memmap)
    options: Any = {"steps": 15, "metrics_every": 5, "regularizer": DR3(0.1), "progress": False}
    both = [train(data, DQN(**SMALL), out=tmp_path / place, data_on=place, **options) for place in ("device", "host")]
    assert digest(both[0]) == digest(both[1])


def test_stopping_in_the_middle_of_a_block_changes_nothing(run, tmp_path, monkeypatch, save_every_chunk):
    whole = digest(run(out=tmp_path / "whole", data_on="device"))
    session = import_module("dr3.training.session")
    real = session.in_threads
    stops = [11, 33]

    def interrupted(work, stop, pool, **how):
        if stops and int(work[0].progress.step) >= stops[0]:
            stops.pop(0)
            signal.raise_signal(signal.SIGINT)
        return real(work, stop, pool, **how)

    monkeypatch.setattr(session, "in_threads", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(out=tmp_path / "run", data_on="host", chunk=5)
    runs = run(out=tmp_path / "run", data_on="host", chunk=9)
    assert runs.status["finished"]
    assert digest(runs) == whole


def test_stacked_members_stream_their_own_rows(run, tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("dr3.training.train"), "execution_on", lambda backend: "stacked")
    options: Any = {"seeds": 2, "steps": 20, "env": None}
    resident, streamed = (run(out=tmp_path / place, data_on=place, **options) for place in ("device", "host"))
    for name, values in resident.metrics.items():
        np.testing.assert_allclose(values, streamed.metrics[name], rtol=1e-3, atol=1e-4, err_msg=name)


def test_members_with_one_seed_share_their_blocks(logged, method):
    members = population(method, [None, DR3(0.1)], 2)
    with Feed(members, logged, "host") as feed:
        blocks = [feed.at(number, 0) for number in range(4)]
        assert blocks[0] is blocks[2]
        assert blocks[1] is blocks[3]
        assert blocks[0] is not blocks[1]
        assert (feed.reaches(0, 60), feed.reaches(9, 60), feed.reaches(9, 10)) == (7, 14, 10)


def test_a_table_beyond_the_limit_goes_to_the_host(logged, monkeypatch):
    assert place_of(logged, "auto") == "device"
    monkeypatch.setattr(import_module("dr3.training.feed"), "RESIDENT_SHARE", 0.0)
    assert place_of(logged, "auto") == "host"
    assert place_of(logged, "device") == "device"


def test_the_whole_table_at_once_cannot_be_streamed(run, logged, method, tmp_path):
    with pytest.raises(UserError, match="batch_size 0 takes the whole table"):
        train(logged, dataclasses.replace(method, batch_size=0), steps=1, out=tmp_path / "run", data_on="host")
    assert not (tmp_path / "run" / "config.json").exists()


def test_the_size_of_a_table_counts_each_frame_once(replay):
    data = read_dqn_replay(replay, num_actions=3)
    own = sum(getattr(data, name).nbytes for name in ("actions", "rewards", "terminals", "timeouts", "next_actions"))
    own += sum(getattr(data, name).nbytes for name in ("next_action_known", "returns", "episodes"))
    # 90 steps of 12 x 12 bytes and the three blank frames before each of four episodes; a row points at two of them.
    assert data.nbytes == own + 144 * (90 + 12) + 2 * 4 * len(data)


def test_the_command_streams(tmp_path):
    words = ["train", "dqn", "--data", "grid16smoothobs", "--hidden", "8", "--batch-size", "8", "--steps", "8"]
    assert command([*words, "--env", "none", "--data-on", "host", "--out", str(tmp_path / "run")]) == 0
    assert '"data_on": "host"' in (tmp_path / "run" / "environment.json").read_text()
