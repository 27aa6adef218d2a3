from __future__ import annotations

import dataclasses
import zipfile

import numpy as np
import pytest

from dr3.data import read, read_npz, sample_gridworld, write_npz
from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.envs import gridworld
from dr3.errors import UserError

# Two episodes of three steps; the first ends, the second is cut.
DISCRETE = {
    "observations": np.arange(12, dtype=np.float32).reshape(6, 2),
    "actions": np.array([0, 1, 2, 2, 1, 0]),
    "rewards": np.array([1.0, 0.0, 4.0, 0.0, 2.0, 8.0]),
    "terminals": np.array([0, 0, 1, 0, 0, 0]),
}
CONTINUOUS = DISCRETE | {"actions": np.linspace(-1, 1, 12).reshape(6, 2)}


def save(path, columns):
    np.savez(path, **columns)
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "log.npz"


def test_what_is_missing_is_derived_from_the_rows(file):
    table = read_npz(save(file, DISCRETE), discount=0.5)
    # The last row is dropped: its s' was never logged. The row before it is where the episode was cut.
    assert len(table) == 5
    np.testing.assert_array_equal(table.next_observations[[0, 1, 3, 4]], DISCRETE["observations"][[1, 2, 4, 5]])
    np.testing.assert_array_equal(table.terminals, [0, 0, 1, 0, 0])
    np.testing.assert_array_equal(table.timeouts, [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(table.episodes, [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(table.next_actions, [1, 2, 0, 1, 0])
    np.testing.assert_array_equal(table.next_action_known, [1, 1, 0, 1, 1])
    np.testing.assert_allclose(table.returns, [2.0, 2.0, 4.0, 3.0, 6.0])
    assert table.returns_discount == 0.5
    assert table.action_space == DiscreteActions(3)
    assert table.name == "log"
    assert table.world is None
    assert table.actions.dtype == np.int32
    assert table.rewards.dtype == np.float32


def test_no_row_reaches_across_the_boundary_of_an_episode(file):
    columns = DISCRETE | {"terminals": np.zeros(6), "timeouts": np.array([0, 0, 1, 0, 0, 0])}
    table = read_npz(save(file, columns))
    # Rows 2 and 5 are dropped: the first observation of the next episode is not the s' of a time-out.
    np.testing.assert_array_equal(table.observations[:, 0], [0, 2, 6, 8])
    np.testing.assert_array_equal(table.next_observations[:, 0], [2, 4, 8, 10])
    np.testing.assert_array_equal(table.timeouts, [0, 1, 0, 1])
    np.testing.assert_array_equal(table.episodes, [0, 0, 1, 1])
    np.testing.assert_array_equal(table.next_actions, [1, 2, 1, 0])


def test_episode_numbers_cut_where_no_flag_does(file):
    columns = DISCRETE | {"terminals": np.zeros(6), "episodes": np.array([7, 7, 3, 3, 3, 3])}
    table = read_npz(save(file, columns))
    np.testing.assert_array_equal(table.observations[:, 0], [0, 4, 6, 8])
    np.testing.assert_array_equal(table.episodes, [7, 3, 3, 3])
    np.testing.assert_array_equal(table.timeouts, [1, 0, 0, 1])


def test_with_next_observations_every_row_is_kept(file):
    table = read_npz(save(file, DISCRETE | {"next_observations": DISCRETE["observations"] + 2}))
    assert len(table) == 6
    assert not table.timeouts.any()
    np.testing.assert_array_equal(table.next_action_known, [1, 1, 0, 1, 1, 0])


def test_given_next_actions_are_known_but_at_terminals_and_zero_elsewhere(file):
    columns = DISCRETE | {"next_observations": DISCRETE["observations"], "next_actions": np.array([1, 2, 99, 1, 0, 2])}
    table = read_npz(save(file, columns))
    np.testing.assert_array_equal(table.next_actions, [1, 2, 0, 1, 0, 2])
    np.testing.assert_array_equal(table.next_action_known, [1, 1, 0, 1, 1, 1])


def test_where_an_episode_ends_and_runs_out_of_time_it_ended(file):
    columns = DISCRETE | {"timeouts": DISCRETE["terminals"], "next_observations": DISCRETE["observations"]}
    table = read_npz(save(file, columns))
    assert table.terminals[2]
    assert not table.timeouts.any()


def test_continuous_actions_have_a_range(file):
    assert read_npz(save(file, CONTINUOUS)).action_space == ContinuousActions(2, -1.0, 1.0)
    wide = CONTINUOUS | {"actions": 0.4 * CONTINUOUS["actions"].astype(np.float32), "action_high": 0.4}
    table = read_npz(save(file, wide | {"action_low": -0.4}))  # float32(0.4) > 0.4: a bound is rounded like an action
    assert table.action_space == ContinuousActions(2, -0.4, 0.4)
    assert table.actions.dtype == np.float32


def test_trailing_axes_of_length_one_are_dropped(file):
    table = read_npz(save(file, DISCRETE | {"rewards": DISCRETE["rewards"][:, None]}))
    assert table.rewards.shape == (5,)


def test_images_stay_bytes(file):
    images = np.zeros((6, 4, 4, 1), np.uint8)
    table = read_npz(save(file, DISCRETE | {"observations": images}))
    assert table.observations.dtype == table.next_observations.dtype == np.uint8


@pytest.mark.parametrize("size", [60, 100])
def test_a_written_table_reads_back_the_same(file, size):
    table = sample_gridworld(gridworld("grid16smoothobs"), size=size)
    write_npz(file, table)
    back = read(file)
    assert back.fingerprint() == table.fingerprint()
    assert (back.name, back.world, back.returns_discount) == (table.name, table.world, 0.95)
    assert [path.name for path in file.parent.iterdir()] == ["log.npz"]


def test_a_continuous_subset_reads_back_the_same(file, tmp_path):
    table = read_npz(save(tmp_path / "first.npz", CONTINUOUS)).subset(0.6, seed=0)
    write_npz(file, table)
    assert read_npz(file).fingerprint() == table.fingerprint()


def test_a_failed_write_leaves_the_old_file_alone(file, monkeypatch):
    table = read_npz(save(file, DISCRETE))
    before = file.read_bytes()

    def disk_full(handle, **arrays):
        handle.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", disk_full)
    with pytest.raises(OSError, match="disk full"):
        write_npz(file, table)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["log.npz"]


def test_writing_into_no_folder_is_refused(tmp_path, file):
    table = read_npz(save(file, DISCRETE))
    with pytest.raises(UserError, match="folder"):
        write_npz(tmp_path / "nowhere" / "log.npz", table)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path, file):
    assert refusal(file) == f"{file}: there is no such file."
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    assert refusal(folder) == f"{folder}: this is a folder, but a file is needed."


def test_damaged_files_are_refused(file):
    whole = save(file, DISCRETE).read_bytes()
    for content, words in [
        (b"", "empty (0 bytes)"),
        (b"observations,actions\n", "not a .npz file"),
        (whole[: len(whole) // 2], "cut short"),
        (whole[:-10], "cut short"),
        (whole[:5], "cut short"),
    ]:
        file.write_bytes(content)
        assert words in refusal(file)

    scratched = bytearray(whole)
    place = whole.index(DISCRETE["observations"].tobytes())
    scratched[place] ^= 0xFF
    file.write_bytes(scratched)
    assert refusal(file) == f"{file}: 'observations' is damaged or was cut short; copy or write the file again."


@pytest.mark.parametrize("shape", [(6 * 10**14,), (10**30,)])
def test_a_header_that_claims_more_than_the_memory_is_damage(file, shape):
    save(file, {field: values for field, values in DISCRETE.items() if field != "rewards"})
    with zipfile.ZipFile(file, "a") as archive, archive.open("rewards.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": shape})
        member.write(bytes(48))
    assert refusal(file).startswith(f"{file}: 'rewards': its header speaks of ")


def test_integers_that_fit_stay_as_they_are(file):
    extremes = np.array([[-(2**31), 2**31 - 1]] * 6)
    assert read_npz(save(file, DISCRETE | {"observations": extremes})).observations.dtype == np.int64


def test_a_single_array_is_refused(file):
    with file.open("wb") as handle:
        np.save(handle, DISCRETE["observations"])
    assert "single .npy array" in refusal(file)


def test_pickled_objects_are_never_loaded(file):
    save(file, DISCRETE | {"rewards": np.array([1.0, 0.0, "lots", None, 2.0, 8.0], dtype=object)})
    message = f"{file}: 'rewards': it holds pickled Python objects, which are never loaded; store plain numbers."
    assert refusal(file) == message


def test_a_member_that_is_no_array_is_refused(file):
    save(file, {field: values for field, values in DISCRETE.items() if field != "rewards"})
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("rewards", "1, 2, 3")
    assert refusal(file) == f"{file}: 'rewards': this is not a .npy file."


def test_other_arrays_in_the_file_are_passed_over(file):
    assert len(read_npz(save(file, DISCRETE | {"log_probabilities": np.array([None, 1], dtype=object)}))) == 5


def with_value(field, row, value, columns=DISCRETE):
    changed = columns[field].astype(np.float64)
    changed[row] = value
    return {field: changed}


BEHAVIOR = np.full((6, 3), 1 / 3)
MASKS = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0], [1, 0, 0]], np.bool_)
PROPENSITIES = np.array([0.5, 1.0, 0.25, 0.125, 0.75, 0.5])


def test_what_is_allowed_at_the_next_state_is_what_the_next_row_allows(file):
    table = read_npz(save(file, DISCRETE | {"masks": MASKS, "propensities": PROPENSITIES}))
    np.testing.assert_array_equal(table.masks, MASKS[:5])
    expected = MASKS[[1, 2, 0, 4, 5]]
    expected[2] = True  # behind the terminal nothing is chosen
    np.testing.assert_array_equal(table.next_masks, expected)
    np.testing.assert_array_equal(table.propensities, PROPENSITIES[:5])
    assert table.left_out == (("last row of an episode that was cut: s' is not logged", 1),)


def test_a_cut_row_whose_next_mask_is_not_logged_is_left_out_and_counted(file):
    columns = DISCRETE | {"next_observations": DISCRETE["observations"] + 2, "masks": MASKS}
    table = read_npz(save(file, columns))
    assert (len(table), table.timeouts.tolist()) == (5, [0, 0, 0, 0, 1])
    assert table.left_out == (("last row of an episode that was cut: the allowed actions at s' are not logged", 1),)
    following = np.roll(MASKS, -1, axis=0)
    whole = read_npz(save(file, columns | {"next_masks": following}))
    assert (len(whole), whole.left_out) == (6, ())
    assert whole.next_masks is not None
    assert whole.next_masks[2].all()
    np.testing.assert_array_equal(np.delete(whole.next_masks, 2, axis=0), np.delete(following, 2, axis=0))


def test_masks_and_propensities_come_back_and_count_in_the_fingerprint(file):
    plain = read_npz(save(file, DISCRETE))
    table = read_npz(save(file, DISCRETE | {"masks": MASKS, "propensities": PROPENSITIES}))
    assert table.fingerprint() != plain.fingerprint()
    without = dataclasses.replace(table, masks=None, next_masks=None, propensities=None)
    assert without.fingerprint() == plain.fingerprint()
    write_npz(file, table)
    assert read_npz(file).fingerprint() == table.fingerprint()
    some = table.subset(0.4, seed=0)
    assert some.masks is not None
    assert some.next_masks is not None
    assert some.propensities is not None
    assert some.masks.shape == some.next_masks.shape == (2, 3)
    assert some.propensities.shape == (2,)


BROKEN = {
    "missing": ({"rewards": None}, ["'rewards' is missing"]),
    "misspelt": ({"timeout": np.zeros(6)}, ["'timeout'", "rename it to 'timeouts'"]),
    "short": ({"rewards": np.zeros(5)}, ["'rewards' has 5 rows", "has 6"]),
    "scalar": ({"terminals": np.array(0)}, ["'terminals' has a single value"]),
    "nan": (with_value("observations", (3, 1), np.nan), ["row 3 of 'observations' is nan"]),
    "infinite": (with_value("rewards", 5, np.inf), ["row 5 of 'rewards' is inf"]),
    "too large": (with_value("rewards", 1, 1e300), ["row 1 of 'rewards' is 1e+300"]),
    "next nan": ({"next_observations": np.full((6, 2), np.nan)}, ["row 0 of 'next_observations' is nan"]),
    "next shape": ({"next_observations": np.zeros((6, 3))}, ["'next_observations' has shape (6, 3)"]),
    "text": ({"rewards": np.array(list("abcdef"))}, ["'rewards' holds values of type <U1"]),
    "complex": ({"observations": np.zeros((6, 2), complex)}, ["'observations' holds values of type complex128"]),
    "flat": ({"observations": np.zeros(6)}, ["'observations' has shape (6,)"]),
    "no columns": ({"observations": np.zeros((6, 0))}, ["'observations' has shape (6, 0)"]),
    "wide rewards": ({"rewards": np.zeros((6, 2))}, ["'rewards' has shape (6, 2)"]),
    "no rows": ({field: values[:0] for field, values in DISCRETE.items()}, ["'observations' has 0 rows"]),
    "not boolean": (with_value("terminals", 4, 2), ["row 4 of 'terminals' is 2.0"]),
    "negative action": (with_value("actions", 2, -1), ["row 2 of 'actions' is -1.0", "from 0 to 2"]),
    "large action": ({"num_actions": 2}, ["row 2 of 'actions' is 2", "from 0 to 1"]),
    "action that is no number": (
        {"actions": np.array([0, 1, 10**12, 2, 1, 0])},
        ["row 2 of 'actions' is 1000000000000"],
    ),
    "countless actions": ({"num_actions": 10**12}, ["'num_actions' is for 1000000000000", "65536"]),
    "countless probabilities": ({"next_behavior": np.zeros((6, 65_537))}, ["'next_behavior' is for 65537"]),
    "wide integers": (
        {"observations": np.array([[0, 0]] * 4 + [[0, 2**31]] * 2)},
        ["row 4 of 'observations' holds 2147483648", "32 bits"],
    ),
    "wide naturals": (
        {"observations": np.array([[0, 2**32 - 1]] * 5 + [[0, 2**32]], np.uint64)},
        ["row 5 of 'observations' holds 4294967296", "32 bits"],
    ),
    "next of another type": (
        {"observations": np.zeros((6, 2), np.uint8), "next_observations": np.array([[0, 0]] * 3 + [[0, 300]] * 3)},
        ["row 3 of 'next_observations' holds 300", "uint8"],
    ),
    "fraction": (with_value("actions", 1, 0.5), ["row 1 of 'actions' is 0.5", "whole"]),
    "number of actions": ({"num_actions": 2.5}, ["'num_actions' is 2.5"]),
    "bounds of discrete": ({"action_low": -1.0}, ["'action_low'", "continuous"]),
    "integer vectors": ({"actions": np.zeros((6, 2), int)}, ["'actions' has shape (6, 2)", "discrete"]),
    "deep actions": ({"actions": np.zeros((6, 2, 2))}, ["'actions' has shape (6, 2, 2)"]),
    "above high": (with_value("actions", (4, 0), 1.5, CONTINUOUS), ["row 4 of 'actions' holds 1.5", "-1.0 to 1.0"]),
    "bounds swapped": (
        {"actions": CONTINUOUS["actions"], "action_low": 1.0, "action_high": -1.0},
        ["'action_low' is 1.0"],
    ),
    "bounds per dimension": ({"actions": CONTINUOUS["actions"], "action_low": np.zeros(2)}, ["'action_low'", "single"]),
    "next action": ({"next_actions": np.full(6, 9), "num_actions": 3}, ["row 0 of 'next_actions' is 9"]),
    "mask alone": ({"next_action_known": np.ones(6)}, ["'next_actions' is missing"]),
    "returns alone": ({"returns": np.zeros(6)}, ["'returns' is there but 'returns_discount' is not"]),
    "discount alone": ({"returns_discount": 0.9}, ["'returns_discount' is there but 'returns' is not"]),
    "discount": ({"returns": np.zeros(6), "returns_discount": 1.5}, ["'returns_discount' is 1.5"]),
    "scattered": ({"episodes": np.array([0, 0, 0, 1, 0, 0])}, ["row 4 of 'episodes' goes back to episode 0"]),
    "early terminal": ({"episodes": np.array([0, 0, 0, 0, 1, 1])}, ["row 2 of 'terminals' ends episode 0"]),
    "early time-out": (
        {"episodes": np.array([0, 0, 0, 1, 1, 1]), "timeouts": np.array([0, 0, 0, 1, 0, 0])},
        ["row 3 of 'timeouts' ends episode 1"],
    ),
    "named episodes": ({"episodes": np.linspace(0, 1, 6)}, ["'episodes' holds values of type float32"]),
    "huge episodes": ({"episodes": np.full(6, 2**40)}, ["'episodes'", "32 bits"]),
    "sum": ({"next_behavior": BEHAVIOR * [[1], [1], [1], [1], [0.5], [1]]}, ["row 4 of 'next_behavior' sums to 0.5"]),
    "negative": ({"next_behavior": BEHAVIOR - np.array([-0.5, 0.5, 0])}, ["row 0 of 'next_behavior' holds -0.1"]),
    "behaviour width": ({"next_behavior": BEHAVIOR, "num_actions": 4}, ["'next_behavior' has shape (6, 3)", "(6, 4)"]),
    "behaviour of vectors": (
        {"next_behavior": BEHAVIOR, "actions": CONTINUOUS["actions"]},
        ["'next_behavior'", "continuous"],
    ),
    "taken but forbidden": ({"masks": np.roll(MASKS, 1, 1)}, ["row 0 of 'masks' forbids action 0", "4 such rows"]),
    "nothing allowed": ({"masks": MASKS * [[1], [1], [1], [1], [0], [1]]}, ["row 4 of 'masks' allows no action"]),
    "half allowed": ({"masks": MASKS * 0.5}, ["row 0 of 'masks' holds 0.5"]),
    "mask width": ({"masks": MASKS, "num_actions": 4}, ["'masks' has shape (6, 3)", "(6, 4)"]),
    "mask of a row": ({"masks": np.ones(6)}, ["'masks' has shape (6,)"]),
    "mask of vectors": ({"masks": MASKS, "actions": CONTINUOUS["actions"]}, ["'masks'", "continuous"]),
    "next mask alone": ({"next_masks": MASKS}, ["'next_masks' is there but 'masks' is not"]),
    "impossible": ({"propensities": PROPENSITIES - 0.25}, ["row 2 of 'propensities' is 0.0", "above 0 and at most 1"]),
    "more than certain": ({"propensities": PROPENSITIES + 0.25}, ["row 1 of 'propensities' is 1.25"]),
    "name": ({"name": np.array(["a", "b"])}, ["'name' must be a single string"]),
    "no successor": ({"terminals": np.zeros(6), "episodes": np.arange(6)}, ["'next_observations' is missing"]),
}


@pytest.mark.parametrize(("changes", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_columns_are_refused_by_file_field_and_row(file, changes, words):
    columns = {field: values for field, values in (DISCRETE | changes).items() if values is not None}
    message = refusal(save(file, columns))
    assert message.startswith(f"{file}: ")
    assert message.endswith(".")
    assert "\n" not in message
    for word in words:
        assert word in message


def test_probabilities_after_a_terminal_are_not_read(file):
    behavior = BEHAVIOR.copy()
    behavior[2] = 0
    table = read_npz(save(file, DISCRETE | {"next_behavior": behavior}))
    assert table.next_behavior is not None
    assert table.next_behavior.shape == (5, 3)


def test_an_impossible_discount_is_refused(file):
    with pytest.raises(UserError, match=r"1\.5"):
        read_npz(save(file, DISCRETE), discount=1.5)


@pytest.mark.parametrize("name", ["log.txt", "log"])
def test_an_unknown_ending_lists_the_known_ones(name):
    with pytest.raises(UserError, match=rf"{name}: .*\.npz"):
        read(name)


@pytest.mark.parametrize(
    ("given", "plain"), [("../../x", "..-..-x"), ("a/b", "a-b"), ("a\\b\n", "a-b-"), ("", "log")], ids=str
)
def test_a_name_leads_to_no_other_folder(file, given, plain):
    assert read_npz(save(file, DISCRETE | {"name": np.array(given)})).name == plain


def test_every_column_of_the_table_is_written(file):
    table = sample_gridworld(gridworld("grid16smoothobs"), size=5)
    allowed = np.ones((5, 5), np.bool_)
    write_npz(file, dataclasses.replace(table, masks=allowed, next_masks=allowed, propensities=table.rewards + 1))
    # The action space and the parts of observations are fields of other names; the rest a reader says, or a method
    # computes.
    not_written = {"action_space", "parts", "source", "left_out", "filled", "remarks", "schema", "entries"}
    columns = {field.name for field in dataclasses.fields(table)} - not_written - {"value_bounds"}
    with np.load(file) as archive:
        assert columns <= set(archive.files)


def refusal(path):
    with pytest.raises(UserError) as caught:
        read_npz(path)
    return str(caught.value)
