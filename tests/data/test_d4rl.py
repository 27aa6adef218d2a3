from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

import dr3
from dr3.data import read, read_d4rl, write_d4rl
from dr3.data.d4rl import counted_timeouts
from dr3.errors import UserError

h5py = pytest.importorskip("h5py")

# Three episodes of three steps: one is cut, one ends, one is still going on when the log stops.
ROWS = 9
COLUMNS = {
    "observations": np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2),
    "actions": np.linspace(-1, 1, ROWS, dtype=np.float32)[:, None],
    "rewards": np.arange(ROWS, dtype=np.float32)[:, None],  # some files keep the axis
    "terminals": np.arange(ROWS) == 5,
    "timeouts": np.arange(ROWS) == 2,
}


def save(path, columns):
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            file.create_dataset(name, data=values)
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "log.hdf5"


def refusal(path, **options):
    with pytest.raises(UserError) as caught:
        read_d4rl(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_the_planted_boundaries_are_not_crossed(file):
    table = read(
        save(file, COLUMNS | {"infos/qpos": np.zeros(3), "metadata/algorithm": np.bytes_("SAC")}), discount=0.5
    )
    # Rows 2 and 8 go: what follows them in the file is the next episode's beginning, and nothing.
    np.testing.assert_array_equal(table.observations[:, 0], [0, 2, 6, 8, 10, 12, 14])
    np.testing.assert_array_equal(table.terminals, [0, 0, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(table.timeouts, [0, 1, 0, 0, 0, 0, 1])
    # Behind the terminal the file goes on with row 6, observation 12; that is not its s'.
    np.testing.assert_array_equal(table.next_observations[:, 0], [2, 4, 8, 10, 10, 14, 16])
    np.testing.assert_array_equal(table.episodes, [0, 0, 1, 1, 1, 2, 2])
    np.testing.assert_allclose(table.returns[2:5], [3 + 2 + 1.25, 4 + 2.5, 5])
    assert table.rewards.shape == (7,)
    assert table.world is None


def test_without_timeouts_the_limit_of_the_task_counts(tmp_path):
    rows = 2003
    columns = {
        "observations": np.arange(rows, dtype=np.float32)[:, None],
        "actions": np.zeros((rows, 3), np.float32),
        "rewards": np.ones(rows, np.float32),
        "terminals": np.arange(rows) == 1,
    }
    table = read(save(tmp_path / "hopper_random.hdf5", columns))
    # A terminal after 2 steps; then 1,000 steps, the last dropped; then 1,000 more; then one without a successor.
    np.testing.assert_array_equal(np.flatnonzero(np.diff(table.observations[:, 0]) > 1), [1000])
    assert len(table) == 2 + 999 + 999
    assert table.world == "Hopper-v5"

    other = save(tmp_path / "mine.hdf5", columns)
    assert "'timeouts' is missing" in refusal(other)
    assert "mine.hdf5:limit=1000" in refusal(other)
    assert dr3.load(f"{other}:limit=1000").fingerprint() == table.fingerprint()
    with pytest.raises(UserError, match="limit"):
        dr3.load("grid.npz:limit=3")


def test_counting_starts_again_after_a_terminal():
    terminals = np.array([0, 0, 1, 0, 0, 0, 0, 0], np.bool_)
    np.testing.assert_array_equal(counted_timeouts(terminals, 2), [0, 1, 0, 0, 1, 0, 1, 0])
    with pytest.raises(UserError, match="at least 1"):
        counted_timeouts(terminals, 0)


def test_next_observations_are_compared_and_not_read(file):
    following = np.roll(COLUMNS["observations"], -1, axis=0)
    plain = read(save(file, COLUMNS))
    agreeing = save(file.with_name("other.hdf5"), COLUMNS | {"next_observations": following})
    assert read(agreeing).fingerprint() == plain.fingerprint()
    # A cut that no flag marks: row 6 was followed by something else, so all of them are taken at their word.
    following[6] = -1
    table = read(save(file, COLUMNS | {"next_observations": following}))
    assert len(table) == ROWS
    np.testing.assert_array_equal(np.flatnonzero(table.timeouts), [2, 6])
    np.testing.assert_array_equal(table.next_observations[6], [-1, -1])
    assert not table.next_action_known[6]


def test_a_file_of_one_row_has_no_next_row_to_compare_with(file):
    columns = {name: values[5:6] for name, values in COLUMNS.items()}
    table = read(save(file, columns | {"next_observations": np.ones((1, 2))}))
    np.testing.assert_array_equal(table.observations, [[10, 11]])
    assert table.terminals.tolist() == [True]


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 3)])
def test_what_is_written_reads_back_the_same(file, logged, part):
    table = logged.rows(part)
    table = dataclasses.replace(table, next_actions=np.where(table.next_action_known, table.next_actions, 0))
    write_d4rl(file, table)
    back = read(file)
    assert back.fingerprint() == table.fingerprint()
    assert (back.name, back.world) == (table.name, table.world)
    assert [path.name for path in file.parent.iterdir()] == ["log.hdf5"]


def test_frames_are_written_as_images_and_the_world_is_kept(file, corridor_log):
    write_d4rl(file, dataclasses.replace(corridor_log, world="corridor"))
    assert read(file).world == "corridor"
    with h5py.File(file) as stored:
        assert {"observations", "actions", "rewards", "terminals", "timeouts"} <= set(stored)


def test_damaged_files_are_refused(file):
    whole = save(file, COLUMNS).read_bytes()
    for content, words in [
        (b"", "empty (0 bytes)"),
        (b"observations,actions\n", "not an HDF5 file"),
        (whole[: len(whole) // 2], "damaged or was cut short"),
    ]:
        file.write_bytes(content)
        assert words in refusal(file)
    assert "no such file" in refusal(file.with_name("absent.hdf5"))


def test_a_wrong_byte_is_read_over_or_refused(file):
    """Whichever it is: h5py has many ways to fail, and each must end in a sentence."""
    whole = save(file, COLUMNS).read_bytes()
    refused = 0
    for place in range(8, len(whole), 23):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            read(file)
        except UserError as error:
            refused += str(file) in str(error)
    assert refused > 10


def test_a_scratched_column_is_named(file):
    with h5py.File(file, "w") as stored:
        for name, values in COLUMNS.items():
            stored.create_dataset(name, data=values, chunks=values.shape, fletcher32=True)
    content = bytearray(file.read_bytes())
    content[content.index(COLUMNS["observations"].tobytes())] ^= 0xFF
    file.write_bytes(content)
    assert refusal(file) == f"{file}: 'observations' is damaged or was cut short; copy or write the file again."


NAN = np.where(np.arange(2 * ROWS).reshape(ROWS, 2) == 7, np.nan, 0)
BROKEN = {
    "missing": ({"rewards": None}, "'rewards' is missing"),
    "misspelt": ({"timeouts": None, "timeout": np.zeros(ROWS)}, "rename it to 'timeouts'"),
    "nan": ({"observations": NAN}, "row 3 of 'observations' is nan"),
    "short": ({"actions": np.zeros((4, 1))}, "'actions' has 4 rows"),
    "shape": ({"observations": np.zeros(ROWS)}, "'observations' has shape (9,)"),
    "next shape": ({"next_observations": np.zeros((ROWS, 3))}, "'next_observations' has shape (9, 3)"),
    "beyond": ({"actions": np.full((ROWS, 1), 2.0)}, "row 0 of 'actions' holds 2.0"),
}


@pytest.mark.parametrize(("changes", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_columns_are_refused_by_file_field_and_row(file, changes, words):
    columns = {field: values for field, values in (COLUMNS | changes).items() if values is not None}
    assert words in refusal(save(file, columns))


def test_without_h5py_the_extra_is_named(file, monkeypatch):
    save(file, COLUMNS)
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert "pip install 'dr3[hdf5]'" in refusal(file)
