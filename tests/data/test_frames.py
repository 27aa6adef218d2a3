from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from dr3.data import DiscreteActions, Frames, Transitions, describe, read_npz, write_npz
from dr3.data.batch import Batch
from dr3.data.frames import compact, same_rows
from dr3.errors import UserError
from dr3.methods import DQN
from dr3.runs import digest
from dr3.training import train


def packed(boards, newest, **options) -> Frames:
    flat = boards.reshape(len(boards), -1)
    return Frames(np.packbits(flat, axis=1), np.asarray(newest, np.int32), bits=boards.shape[1:], **options)


@pytest.fixture
def boards():
    return np.random.default_rng(0).random((7, 3, 3, 2)) < 0.5


@pytest.fixture
def shared(corridor_log) -> Transitions:
    """The log of the corridor with every observation in one store: s' is the frame behind that of s."""
    store = np.concatenate([corridor_log.observations, corridor_log.next_observations[-1:]])
    following = np.arange(1, len(corridor_log) + 1)
    following[corridor_log.terminals] -= 1
    bits = np.packbits(store, axis=1)
    return dataclasses.replace(
        corridor_log,
        observations=Frames(bits, np.arange(len(corridor_log), dtype=np.int32), bits=(5,)),
        next_observations=Frames(bits, following.astype(np.int32), bits=(5,)),
    )


def test_a_packed_column_is_the_array_it_stands_for(boards) -> None:
    newest = [4, 0, 6, 6]
    column = packed(boards, newest)
    assert (len(column), column.shape, column.ndim, column.dtype) == (4, (4, 3, 3, 2), 4, np.bool_)
    np.testing.assert_array_equal(np.asarray(column), boards[newest])
    np.testing.assert_array_equal(column[1:3], boards[[0, 6]])
    np.testing.assert_array_equal(column[2], boards[6])
    np.testing.assert_array_equal(column.rows(slice(1, 3))[:], boards[[0, 6]])


def test_a_stack_is_oldest_first_on_the_last_axis() -> None:
    frames = np.arange(5, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), np.uint8)
    column = Frames(frames, np.array([3, 4], np.int32), stack=3)
    assert column.shape == (2, 2, 2, 3)
    np.testing.assert_array_equal(column[:][:, 0, 0], [[1, 2, 3], [2, 3, 4]])
    np.testing.assert_array_equal(column[1][0, 0], [2, 3, 4])


def test_on_the_device_it_gathers_the_same(boards) -> None:
    column = packed(boards, [1, 3, 5], stack=2)
    device = Frames(jnp.asarray(column.stored), jnp.asarray(column.newest), column.bits, column.stack)
    rows = np.array([2, 0, 2])
    np.testing.assert_array_equal(device[rows], column[rows])
    assert device[rows].dtype == bool


def test_compacting_keeps_the_rows_and_only_their_frames(boards) -> None:
    column = packed(boards, [2, 6], stack=2)
    other = column.rows([1, 1])
    kept, also = compact(column, other)
    assert len(kept.stored) == 4
    assert kept.stored is also.stored
    np.testing.assert_array_equal(kept[:], column[:])
    np.testing.assert_array_equal(also[:], other[:])


def test_rows_of_two_columns_are_compared_some_at_a_time(boards, monkeypatch) -> None:
    monkeypatch.setattr("dr3.data.frames.CHUNK", 2)
    column = packed(boards, [0, 1, 2, 3, 4])
    seen = [[0, 4], [1, 1], [2, 3], [3, 0], [4, 4]]
    mine, its = np.array(seen).T
    np.testing.assert_array_equal(same_rows(column, mine, boards, its), [False, True, False, False, True])
    assert same_rows(column, mine[:0], boards, its[:0]).shape == (0,)


@pytest.mark.slow
def test_training_on_shared_frames_is_training_on_plain_arrays(shared, corridor_log, tmp_path) -> None:
    digests = []
    for name, data, batch_size in (("plain", corridor_log, 4), ("shared", shared, 4), ("whole", shared, 0)):
        method = DQN(hidden=(4,), batch_size=batch_size)
        digests.append(digest(train(data, method, steps=10, out=tmp_path / name, env=None, progress=False)))
    whole = train(
        corridor_log, DQN(hidden=(4,), batch_size=0), steps=10, out=tmp_path / "all", env=None, progress=False
    )
    assert digests[0] == digests[1]
    assert digests[2] == digest(whole)


def test_a_batch_holds_plain_arrays(shared, corridor_log) -> None:
    rows = jnp.array([7, 3, 3])
    ours, plain = Batch.of(shared), Batch.of(corridor_log)
    for one, other in zip(ours.take(rows), plain.take(rows), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(ours.all_rows(), plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_description_is_that_of_the_plain_table(shared, corridor_log) -> None:
    one, other = describe(shared), describe(corridor_log)
    assert dataclasses.replace(one, fingerprint="") == dataclasses.replace(other, fingerprint="")


def test_a_file_holds_each_frame_once_and_reads_back(shared, tmp_path) -> None:
    write_npz(tmp_path / "log.npz", shared.rows(slice(2, 8)))
    back = read_npz(tmp_path / "log.npz")
    assert back.fingerprint() == shared.rows(slice(2, 8)).fingerprint()
    assert isinstance(back.observations, Frames)
    assert isinstance(back.next_observations, Frames)
    assert back.observations.stored is back.next_observations.stored
    assert len(back.observations.stored) == 7
    np.testing.assert_array_equal(back.next_observations[:], shared.next_observations[2:8])


def test_fingerprints_stay_what_they_are() -> None:
    """Runs are known by them: those of finished runs must still be found."""
    rows = np.arange(6)
    plain = Transitions(
        observations=np.arange(12, dtype=np.float32).reshape(6, 2),
        actions=(rows % 3).astype(np.int32),
        rewards=rows.astype(np.float32),
        next_observations=np.arange(1, 13, dtype=np.float32).reshape(6, 2),
        terminals=rows == 2,
        timeouts=rows == 5,
        next_actions=np.zeros(6, np.int32),
        next_action_known=np.zeros(6, np.bool_),
        returns=rows.astype(np.float32),
        episodes=(rows // 3).astype(np.int32),
        action_space=DiscreteActions(3),
        returns_discount=0.5,
    )
    store, newest = np.arange(9, dtype=np.uint8)[:, None], np.arange(2, 8, dtype=np.int32)

    def framed(**options) -> Transitions:
        now, following = (Frames(store, numbers, **options) for numbers in (newest, newest + 1))
        return dataclasses.replace(plain, observations=now, next_observations=following)

    assert [table.fingerprint()[:16] for table in (plain, framed(), framed(bits=(5,)), framed(stack=3))] == [
        "d4d32b7fc113ac74",
        "fb17ded6279c00c5",
        "faa4435ff47671cc",
        "f2a55b1a62412e08",
    ]


def test_the_store_of_stacks_is_read_once_for_a_fingerprint() -> None:
    class Counted(np.ndarray):
        frames = 0

        def __getitem__(self, index):
            Counted.frames += len(index)
            return np.asarray(self)[index]

    store, newest = np.arange(9, dtype=np.uint8)[:, None].view(Counted), np.arange(2, 8, dtype=np.int32)
    columns: dict[str, Any] = {field.name: np.zeros(6, np.int32) for field in dataclasses.fields(Transitions)}
    columns["parts"] = None
    columns["observations"], columns["next_observations"] = (Frames(store, newest + n, stack=3) for n in (0, 1))
    Transitions(**columns).fingerprint()
    assert Counted.frames == 9


def test_fingerprints_tell_contents_apart(shared) -> None:
    other = shared.observations.stored.copy()
    other[3] ^= 128
    changed = [dataclasses.replace(column, stored=other) for column in (shared.observations, shared.next_observations)]
    assert (
        dataclasses.replace(shared, observations=changed[0], next_observations=changed[1]).fingerprint()
        != shared.fingerprint()
    )
    assert shared.rows([0, 1]).fingerprint() != shared.rows([1, 0]).fingerprint()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"observation_frames": np.array([0] * 7 + [99])}, "row 7 of 'observation_frames' points at frame 99"),
        ({"frame_shape": np.array([17])}, "is not that of packed booleans"),
        ({"frames": np.zeros((3, 1))}, "holds images of integers"),
        ({"observation_frames": np.zeros(3, np.int32)}, "'observations' has 3 rows, but 'rewards' has 8"),
        ({"next_observation_frames": None}, "'next_observation_frames' is missing"),
        ({"frame_stack": np.array(0)}, r"'frame_stack' is \[0\], but it must be one whole number above 0"),
        ({"frame_stack": np.array([-3])}, r"'frame_stack' is \[-3\]"),
        ({"frame_stack": np.array([2, 2])}, r"'frame_stack' is \[2, 2\]"),
        ({"rewards": np.array(1.0)}, "'rewards' has a single value, but 'observations' has 8"),
        ({"frames": np.full((9, 5), 2**40), "frame_shape": None}, "row 0 of 'frames' holds 1099511627776"),
    ],
)
def test_broken_frames_are_refused(shared, tmp_path, change, sentence) -> None:
    write_npz(tmp_path / "log.npz", shared)
    with np.load(tmp_path / "log.npz") as archive:
        arrays = {**archive, **change}
    np.savez(tmp_path / "log.npz", **{name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(UserError, match=sentence):
        read_npz(tmp_path / "log.npz")
