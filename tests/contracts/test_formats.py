"""What every format keeps of a table, and how every reader refuses what is damaged."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import dr3
from dr3.cli import invoke
from dr3.data import WRITERS, ContinuousActions, Frames, Transitions, assemble, describe, read_dqn_replay, write
from dr3.errors import UserError

pytest.importorskip("h5py")
pytest.importorskip("pyarrow")
ENDINGS = {"npz": ".npz", "d4rl": ".hdf5"}
COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts", "episodes", "returns")
VECTORS = [form for form in WRITERS if form != "dqn-replay"]


def table(kind: str) -> Transitions:
    """Three episodes: one ends, two are cut."""
    random = np.random.default_rng(0)
    rows = 12
    seen = random.normal(size=(rows + 1, 3)).astype(np.float32)
    if kind == "pictures":
        seen = random.integers(1, 256, size=(rows + 1, 4, 5, 2), dtype=np.uint8)
    following = seen[1:].copy()
    following[[3, 8]] = 0
    columns = {
        "observations": seen[:-1],
        "next_observations": following,
        "rewards": random.normal(size=rows).astype(np.float32),
        "terminals": np.arange(rows) == 3,
        "timeouts": np.isin(np.arange(rows), [8, 11]),
        "world": np.array("CartPole-v1"),
    }
    if kind != "continuous":
        columns |= {"actions": random.integers(4, size=rows), "num_actions": np.array(6)}
    else:
        columns |= {"actions": random.uniform(-0.4, 0.4, size=(rows, 2)), "action_low": np.array(-0.5)}
        columns |= {"action_high": np.array(0.5)}
    return assemble(columns, source="made up", name="made-up")


@pytest.mark.parametrize("kind", ["discrete", "continuous", "pictures"])
@pytest.mark.parametrize("form", VECTORS)
def test_a_table_comes_back_as_it_was(form, kind, tmp_path):
    made = table(kind)
    path = tmp_path / f"out{ENDINGS.get(form, '')}"
    assert write(path, made, form=form) == form
    back = dr3.load(path)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(back, column), getattr(made, column), err_msg=column)
        assert getattr(back, column).dtype == getattr(made, column).dtype, column
    assert (back.action_space, back.world, back.name) == (made.action_space, "CartPole-v1", "made-up")
    inside = made.next_action_known & ~made.timeouts
    np.testing.assert_array_equal(back.next_actions[inside], made.next_actions[inside])
    assert describe(back).timeouts == 2
    assert [file.name for file in tmp_path.iterdir()] == [path.name]  # nothing is left beside it


@pytest.mark.parametrize("form", VECTORS)
def test_a_table_of_one_row_comes_back(form, tmp_path):
    made = table("discrete").rows(slice(3, 4))
    path = tmp_path / f"out{ENDINGS.get(form, '')}"
    write(path, made, form=form)
    back = dr3.load(path)
    np.testing.assert_array_equal(back.observations, made.observations)
    np.testing.assert_array_equal(back.next_observations, made.next_observations)
    assert back.terminals.tolist() == [True]


@pytest.mark.parametrize("form", ["minari", "minari-arrow"])
def test_minari_itself_reads_what_is_written(form, tmp_path):
    minari = pytest.importorskip("minari")
    made = table("continuous")
    write(tmp_path / "out", made, form=form)
    theirs = minari.MinariDataset(tmp_path / "out" / "data")
    assert (theirs.total_episodes, theirs.total_steps) == (3, len(made))
    assert theirs.spec.env_spec.id == "CartPole-v1"
    first = theirs[0]
    np.testing.assert_array_equal(first.observations[:-1], made.observations[:4])
    np.testing.assert_array_equal(first.actions, made.actions[:4])
    assert list(first.terminations) == [False, False, False, True]


def test_rows_that_do_not_follow_each_other_are_no_episode_of_minari(tmp_path):
    with pytest.raises(UserError, match=r"rows 0 and 1 .*\.npz"):
        write(tmp_path / "out", table("discrete").rows(np.array([0, 2, 3])), form="minari")
    assert not list(tmp_path.iterdir())


def replay(last: str) -> Transitions:
    """Two episodes of stacked images, each beginning with three frames of zeros."""
    images = np.random.default_rng(0).integers(1, 255, size=(7, 5, 5), dtype=np.uint8)
    empty = np.zeros((3, 5, 5), np.uint8)
    stacks = [
        np.moveaxis(np.lib.stride_tricks.sliding_window_view(np.concatenate([empty, part]), 4, axis=0), -1, -1)
        for part in (images[:4], images[4:])
    ]
    ends = np.array([0, 0, 0, 1, 0, 0, int(last == "terminals")])
    columns = {
        "observations": np.concatenate(stacks),
        "actions": np.arange(7) % 3,
        "rewards": np.arange(7) % 6,
        "terminals": ends,
    }
    return assemble(columns, source="made up", name="made-up")


@pytest.fixture
def small_files(monkeypatch):
    """A file of a replay is for a million rows; here 16 will do."""
    import importlib

    monkeypatch.setattr(
        importlib.import_module("dr3.data.convert"),
        "write_dqn_replay",
        lambda folder, **columns: dr3.data.write_dqn_replay(folder, rows_per_file=16, **columns),
    )


@pytest.mark.parametrize("last", ["terminals", "timeouts"])
def test_stacks_of_images_as_a_dqn_replay(last, tmp_path, small_files):
    made = replay(last)
    write(tmp_path / "out", made, form="dqn-replay")
    back = read_dqn_replay(tmp_path / "out")
    for column in COLUMNS:
        np.testing.assert_array_equal(
            np.asarray(getattr(back, column)), np.asarray(getattr(made, column)), err_msg=column
        )


def test_what_a_dqn_replay_cannot_keep_is_refused(tmp_path):
    with pytest.raises(UserError, match="stacks"):
        write(tmp_path / "out", table("discrete"), form="dqn-replay")
    cut = replay("terminals")
    cut = dataclasses.replace(cut, timeouts=cut.terminals, terminals=np.zeros(len(cut), np.bool_))
    with pytest.raises(UserError, match="row 3 is a time-out"):
        write(tmp_path / "out", cut, form="dqn-replay")
    with pytest.raises(UserError, match="begins with frames"):
        write(tmp_path / "out", replay("terminals").rows(slice(1, None)), form="dqn-replay")


def test_a_dqn_replay_has_no_gaps_inside_an_episode(tmp_path):
    with pytest.raises(UserError, match=r"out: rows 1 and 2 are of one episode but do not follow each other.*\.npz"):
        write(tmp_path / "out", replay("terminals").rows(np.array([0, 1, 3, 4, 5, 6])), form="dqn-replay")
    assert not list(tmp_path.iterdir())


def test_an_episode_of_a_dqn_replay_does_not_stop_without_a_terminal_unless_the_log_does(tmp_path, small_files):
    made = replay("terminals")
    with pytest.raises(UserError, match="out: row 1 ends its episode without a terminal"):
        write(tmp_path / "out", made.rows(np.array([0, 1, 4, 5, 6])), form="dqn-replay")
    write(tmp_path / "out", made.rows(slice(0, 2)), form="dqn-replay")


def test_stacks_that_skip_frames_are_no_dqn_replay(tmp_path):
    """Every other frame was never stored, though each s' is the next row's s."""
    made = replay("terminals").rows(slice(0, 2))
    skipping = [np.zeros((5, 5, 4), np.uint8) for _ in range(3)]
    for step, stack in enumerate(skipping):
        stack[..., -2:] = [2 * step, 2 * step + 1]
    skipping[0][..., -2] = 0
    skipped = dataclasses.replace(made, observations=np.stack(skipping[:2]), next_observations=np.stack(skipping[1:]))
    with pytest.raises(UserError, match="out: the s' of row 0 is not its s moved on by one frame"):
        write(tmp_path / "out", skipped, form="dqn-replay")


def test_a_dqn_replay_keeps_the_action_behind_its_last_row(tmp_path, small_files):
    made = replay("timeouts")
    assert made.next_actions[-1] == 0
    cut = made.rows(slice(0, 5))
    assert cut.next_actions[-1] == 2
    write(tmp_path / "out", cut, form="dqn-replay")
    assert read_dqn_replay(tmp_path / "out").next_actions[-1] == 2


def test_frames_that_are_whole_stacks_already_are_a_dqn_replay(tmp_path, small_files):
    made = replay("terminals")
    rows = np.arange(len(made), dtype=np.int32)
    store = np.concatenate([made.observations, made.next_observations])
    whole_stacks = dataclasses.replace(
        made, observations=Frames(store, rows), next_observations=Frames(store, rows + len(made))
    )
    write(tmp_path / "out", whole_stacks, form="dqn-replay")
    np.testing.assert_array_equal(np.asarray(read_dqn_replay(tmp_path / "out").observations), made.observations)


def test_the_command(tmp_path, capsys):
    write(tmp_path / "a.npz", table("discrete"))
    assert invoke(["data", "convert", f"{tmp_path / 'a.npz'}:fraction=0.5", str(tmp_path / "b.hdf5")]) == 0
    assert "(d4rl)" in capsys.readouterr().out
    assert len(dr3.load(tmp_path / "b.hdf5")) == 6
    assert invoke(["data", "convert", str(tmp_path / "a.npz"), str(tmp_path / "c")]) == 2
    assert "--format" in capsys.readouterr().err
    assert invoke(["data", "convert", str(tmp_path / "a.npz"), str(tmp_path / "b.hdf5")]) == 2
    assert "there already" in capsys.readouterr().err
    assert invoke(["data", "convert", str(tmp_path / "a.npz"), str(tmp_path / "c"), "--format", "minari"]) == 0
    assert invoke(["data", "describe", str(tmp_path / "c"), "--json"]) == 0
    assert '"timeouts": 2' in capsys.readouterr().out


@pytest.mark.parametrize("form", VECTORS)
def test_a_file_cut_in_half_is_refused_in_one_sentence(form, tmp_path):
    path = tmp_path / f"out{ENDINGS.get(form, '')}"
    write(path, table("continuous"), form=form)
    largest = max((file for file in [path, *path.rglob("*")] if file.is_file()), key=lambda file: file.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    with pytest.raises(UserError, match="damaged or was cut short") as caught:
        dr3.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", VECTORS)
def test_a_number_that_is_none_is_refused_by_its_row(form, tmp_path):
    made = table("continuous")
    rewards = made.rewards.copy()
    rewards[5] = np.nan
    path = tmp_path / f"out{ENDINGS.get(form, '')}"
    write(path, dataclasses.replace(made, rewards=rewards), form=form)
    with pytest.raises(UserError, match="row 5 of 'rewards' is nan"):
        dr3.load(path)


STEPS = ("rewards", "terminations", "truncations")


def minari_folder(folder, episodes, **metadata):
    """Written by hand, as Minari would."""
    import h5py

    (folder / "data").mkdir(parents=True)
    (folder / "data" / "metadata.json").write_text(json.dumps({"data_format": "hdf5"} | metadata))
    with h5py.File(folder / "data" / "main_data.hdf5", "w") as file:
        for number, episode in enumerate(episodes):
            for name, values in episode.items():
                file[f"episode_{number}/{name}"] = values
    return folder


def episode(steps: int, start: int) -> dict:
    seen = np.arange(start, start + steps + 1, dtype=np.float64)
    return {
        "observations/observation": np.stack([seen, -seen], axis=1),
        "observations/desired_goal": np.full((steps + 1, 1), 7.0),
        "observations/achieved_goal/b": 100 + seen,
        "observations/achieved_goal/a": 200 + seen,
        "actions": np.full((steps, 2), 0.5, np.float32),
        "rewards": np.arange(steps, dtype=np.float64),
        "terminations": np.zeros(steps, np.bool_),
        "truncations": np.arange(steps) == steps - 1,
        "infos/qpos": np.zeros((steps + 1, 3)),
    }


def test_parts_of_observations_are_flattened_by_their_names(tmp_path):
    box = {"type": "Box", "dtype": "float32", "shape": [2], "low": [-1.0, -2.0], "high": [1.0, 2.0]}
    spec = {"id": "AntMaze_UMaze-v4", "kwargs": {"continuing_task": False}}
    folder = minari_folder(
        tmp_path / "set",
        [episode(2, 0), episode(3, 10)] + [episode(1, 20 + number) for number in range(10)],
        action_space=json.dumps(box),
        env_spec=json.dumps(spec),
        dataset_id="D4RL/antmaze/umaze-v1",
    )
    read = dr3.load(folder)
    assert len(read) == 15
    # achieved_goal/a, achieved_goal/b, desired_goal, observation
    np.testing.assert_array_equal(read.observations[1], [201, 101, 7, 1, -1])
    np.testing.assert_array_equal(read.next_observations[1], [202, 102, 7, 2, -2])
    np.testing.assert_array_equal(read.observations[-1], [229, 129, 7, 29, -29])  # episode 10 comes after 9
    np.testing.assert_array_equal(np.flatnonzero(read.timeouts), [1, 4, *range(5, 15)])
    assert read.action_space == ContinuousActions(2, -2.0, 2.0)
    assert read.world == 'AntMaze_UMaze-v4{"continuing_task": false}'
    assert read.name == "D4RL-antmaze-umaze-v1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": None}, "'rewards' is missing"),
        ({"observations/observation": np.zeros((2, 2))}, "'observations' has 2 rows, but 2 steps need 3"),
        ({"actions": np.zeros((3, 2), np.float32)}, "'actions' has 3 rows, but 'rewards' has 2"),
        ({"actions": None, "actions/arm": np.zeros((2, 1))}, "its actions have parts"),
    ],
)
def test_a_broken_episode_is_named(tmp_path, changes, words):
    broken = {name: values for name, values in (episode(2, 0) | changes).items() if values is not None}
    folder = minari_folder(tmp_path / "set", [episode(2, 0), broken])
    with pytest.raises(UserError, match=r"main_data\.hdf5, episode_1: ") as caught:
        dr3.load(folder)
    assert words in str(caught.value)


def test_observations_that_do_not_fit_their_space_are_refused(tmp_path):
    plain = {"observations": np.zeros((3, 4)), **{name: episode(2, 0)[name] for name in (*STEPS, "actions")}}
    for number, (shape, words) in enumerate(
        [([2, 3], r"episode_0: a row of 'observations' has shape \(4,\), .*\(2, 3\)"), (None, "'shape' .* is missing")]
    ):
        space = json.dumps({"type": "Box", "dtype": "float64", "shape": shape})
        folder = minari_folder(tmp_path / str(number), [plain], observation_space=space)
        with pytest.raises(UserError, match=words):
            dr3.load(folder)


def test_what_is_no_folder_of_minari_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"data/metadata\.json"):
        dr3.data.read_minari(tmp_path)
    folder = minari_folder(tmp_path / "set", [], data_format="zarr")
    with pytest.raises(UserError, match="'zarr'"):
        dr3.load(folder)
    for text in ('{"data_format":', "[1, 2]"):
        (folder / "data" / "metadata.json").write_text(text)
        with pytest.raises(UserError, match="no whole JSON"):
            dr3.load(folder)
    for part in ({"action_space": '{"type": "Discrete"}'}, {"env_spec": '{"kwargs": {}}'}):
        folder = minari_folder(tmp_path / next(iter(part)), [episode(2, 0)], **part)
        with pytest.raises(UserError, match="is missing"):
            dr3.load(folder)


# A table of decisions, in each of its formats: what is wrong is said in one sentence with file, column and row.
DECISIONS = {
    "who": ["a", "a", "a", "b", "b"],
    "when": [1, 2, 3, 1, 2],
    "age": [1.0, 2.0, 3.0, 4.0, 5.0],
    "tier": ["x", "y", "x", "x", "y"],
    "offer": ["no", "yes", "no", "yes", "no"],
    "profit": [1.0, 2.0, 3.0, 4.0, 5.0],
    "left": [False, False, True, False, True],
    "p": [0.5, 0.5, 0.5, 0.5, 0.5],
    "can_no": [True, True, True, True, True],
    "can_yes": [True, True, True, True, False],
}
MEANING = {
    "observation": ["age", "tier"],
    "action": "offer",
    "reward": "profit",
    "episode": "who",
    "time": "when",
    "terminal": "left",
    "mask": "can_*",
    "propensity": "p",
    "categories": {"offer": ["no", "yes"], "tier": ["x", "y"]},
}
TABLES = ("parquet", "csv", "feather")


def write_table(path, columns) -> None:
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    made = pa.table(columns)
    {"parquet": parquet.write_table, "csv": csv.write_csv, "feather": feather.write_feather}[path.suffix[1:]](
        made, path
    )


def refusal(tmp_path, form: str, changes: dict, meaning: dict, capsys) -> str:
    """What the command says of a table, on one line and with exit code 2."""
    from dr3.data import Schema

    path = tmp_path / f"log.{form}"
    write_table(path, {name: column for name, column in (DECISIONS | changes).items() if column is not None})
    schema = tmp_path / "schema.toml"
    schema.write_text(meaning if isinstance(meaning, str) else Schema.of(MEANING | meaning).to_toml())
    assert invoke(["data", "describe", f"{path}:schema={schema}"]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    assert said.endswith((".", "?"))
    return said


def changed(name: str, row: int, value) -> dict:
    column = list(DECISIONS[name])
    column[row] = value
    return {name: column}


WRONG_ROWS = {
    "missing": (changed("age", 3, None), {}, ["log", "'age' is missing in 1 rows (the first is row 3)", "[missing]"]),
    "no reward": (changed("profit", 1, None), {}, ["'profit' is missing in 1 rows (the first is row 1)"]),
    "infinite": (changed("age", 2, float("inf")), {}, ["row 2 of 'age' is inf"]),
    "unlisted category": (changed("tier", 4, "z"), {}, ["row 4 of 'tier' is 'z'", "['x', 'y']"]),
    "unlisted action": (changed("offer", 1, "maybe"), {}, ["row 1 of 'offer' is 'maybe'"]),
    "forbidden action": (changed("can_no", 2, False), {}, ["row 2 took action 'no'", "forbids (1 such rows"]),
    "not a probability": (changed("p", 3, 1.5), {}, ["row 3 of 'p' is 1.5", "at most 1"]),
    "two time stamps": (changed("when", 1, 1), {}, ["row 0 and row 1 are both of episode 'a'", "'when'", "duplicates"]),
    "an end in the middle": (changed("left", 0, True), {}, ["row 0 ends episode 'a' in 'left', but row 1 goes on"]),
    "no such column": ({}, {"reward": "profits"}, ["there is no column 'profits'", "'reward'; did you mean profit?"]),
    "no column fits": ({}, {"observation": ["price_*"]}, ["no column fits 'price_*'", "'observation'"]),
    "text": ({}, {"categories": {"offer": ["no", "yes"]}}, ["'tier' holds text", "[categories] tier = ['x', 'y']"]),
    "text for a number": ({}, {"reward": "tier"}, ["'tier' holds values of type string", "numbers are needed"]),
    "a mask of other actions": (
        {"can_yes": None, "can_maybe": [True] * 5},
        {},
        ["'can_*' finds can_no, can_maybe", "no, yes", "in the order of the actions"],
    ),
    "open ends": ({}, {"terminal": None}, ["nothing says how 2 episodes end", "ends = 'terminal'"]),
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize(("changes", "meaning", "words"), WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_a_wrong_table_is_refused_by_file_column_and_row(form, changes, meaning, words, tmp_path, capsys):
    said = refusal(tmp_path, form, changes, meaning, capsys)
    assert str(tmp_path / f"log.{form}") in said
    for word in words:
        assert word in said


WRONG_SCHEMAS = {
    "a name": (
        "observation = ['age']\naction = 'offer'\nrewrad = 'profit'",
        ["has no 'rewrad'", "did you mean reward?"],
    ),
    "no TOML": ("observation = [", ["schema.toml is not TOML"]),
    "too deep": ("observation = " + "[" * 10_000, ["schema.toml is not TOML"]),
    "a world": ("observation = ['age']\naction = 'offer'\nreward = 'profit'\nworld = 3", ["'world' must be the name"]),
    "actions": (
        "observation = ['age']\naction = 'offer'\nreward = 'profit'\nnum_actions = 1000000000000",
        ["'num_actions' must be a whole number from 1 to 65536"],
    ),
    "a size": (
        "observation = ['age']\naction = 'offer'\nreward = 'profit'\n[sizes]\nage = 1000000000000",
        ["the size of 'age' must be a whole number"],
    ),
    "no number": (
        "observation = ['age']\naction = 'offer'\nreward = 'profit'\naction_low = nan",
        ["'action_low' must be a number"],
    ),
    "no list": (
        "observation = 'age'\naction = 'offer'\nreward = 'profit'",
        ["'observation' must be a list of columns"],
    ),
    "nothing": ("", ["'observation' is missing"]),
    "left open": ("observation = ['age']\naction = '?'\nreward = 'profit'", ["leaves 'action' open"]),
    "a rule": (
        "observation = ['age']\naction = 'offer'\nreward = 'profit'\n[missing]\nage = 'mean'",
        ["'missing' of 'age' is a number, 'flag' or 'drop', not 'mean'"],
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_SCHEMAS.values(), ids=WRONG_SCHEMAS)
def test_a_wrong_schema_is_refused_by_its_file(text, words, tmp_path, capsys):
    said = refusal(tmp_path, "parquet", {}, text, capsys)
    for word in words:
        assert word in said


def test_lists_of_different_lengths_are_refused_by_their_row(tmp_path, capsys):
    ragged = {"age": [[1.0, 2.0], [1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0]]}
    assert "row 2 of 'age' has 1 entries, but the others 2" in refusal(tmp_path, "parquet", ragged, {}, capsys)
    short = {"ok": [[True, True]] * 4 + [[True]], "can_no": None, "can_yes": None}
    assert "row 4 of 'ok' has 1 entries, but there are 2" in refusal(tmp_path, "parquet", short, {"mask": "ok"}, capsys)


def test_a_field_of_another_type_in_a_csv_is_named(tmp_path, capsys):
    path = tmp_path / "log.csv"
    write_table(path, DECISIONS)
    path.write_text(_with_word(path.read_text()))
    (tmp_path / "schema.toml").write_text(dr3.data.Schema.of(MEANING).to_toml())
    assert invoke(["data", "describe", f"{path}:schema={tmp_path / 'schema.toml'}"]) == 2
    said = capsys.readouterr().err
    assert str(path) in said
    assert "'age' holds" in said


def _with_word(text: str) -> str:
    lines = text.splitlines()
    fields = lines[4].split(",")
    fields[2] = "four"
    return "\n".join([*lines[:4], ",".join(fields), *lines[5:]]) + "\n"


@pytest.mark.parametrize("form", TABLES)
def test_a_table_cut_in_half_is_refused_in_one_sentence(form, tmp_path, capsys):
    path = tmp_path / f"log.{form}"
    write_table(path, DECISIONS)
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[: half if form != "csv" else content.rindex(b",")])
    (tmp_path / "schema.toml").write_text(dr3.data.Schema.of(MEANING).to_toml())
    assert invoke(["data", "describe", f"{path}:schema={tmp_path / 'schema.toml'}"]) == 2
    said = capsys.readouterr().err.strip()
    assert str(path) in said
    assert "\n" not in said


def test_a_table_without_a_schema_is_told_how_to_get_one(tmp_path, capsys):
    write_table(tmp_path / "log.parquet", DECISIONS)
    assert invoke(["data", "describe", str(tmp_path / "log.parquet")]) == 2
    assert "dr3 data schema FILE > schema.toml" in capsys.readouterr().err
    assert invoke(["data", "schema", str(tmp_path / "log.parquet")]) == 0
    assert 'reward = "profit"' in capsys.readouterr().out


def test_bounds_of_actions_are_settings_of_an_hdf5_file(tmp_path):
    import h5py

    columns = {"observations": np.zeros((3, 2)), "actions": np.full((3, 1), 1.5), "rewards": np.arange(3.0)}
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for name, values in (columns | {"terminals": [0, 0, 1], "timeouts": [0, 0, 0]}).items():
            file[name] = values
    with pytest.raises(UserError, match=r"row 0 of 'actions' holds 1\.5.*FILE:action_low=-2"):
        dr3.load(tmp_path / "log.hdf5")
    data = dr3.load(f"{tmp_path / 'log.hdf5'}:action_low=-2:action_high=2")
    assert data.action_space == ContinuousActions(1, -2.0, 2.0)


def test_a_data_set_of_minari_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine" / "walk-v0", table("discrete"), form="minari")
    assert len(dr3.load("mine/walk-v0")) == 12
