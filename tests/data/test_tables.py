"""Tables of logged decisions: what becomes of their columns and rows, by hand-computed numbers."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import dr3
from dr3.data import Schema, assemble, encode_masks, encode_rows, guess_schema, read_table
from dr3.data.transitions import ContinuousActions, DiscreteActions
from dr3.errors import UserError

pa = pytest.importorskip("pyarrow")
csv, feather, parquet = (pytest.importorskip(f"pyarrow.{name}") for name in ("csv", "feather", "parquet"))

# Two customers, whose rows are mixed and not in the order of time: b ends, a is cut.
ROWS = {
    "customer": ["b", "a", "b", "a", "a"],
    "week": [2, 1, 1, 3, 2],
    "age": [30.0, 41.0, 29.0, 43.0, 42.0],
    "tier": ["gold", "basic", "basic", "gold", "gold"],
    "member": [True, False, True, False, True],
    "offer": ["none", "mail", "call", "none", "mail"],
    "profit": [4.0, 1.0, 2.0, 16.0, 8.0],
    "left": [True, False, False, False, False],
    "can_call": [True, False, True, False, True],
    "can_mail": [True, True, True, True, True],
    "can_none": [True, True, True, True, False],
    "p": [0.5, 0.25, 1.0, 0.125, 0.75],
}
SCHEMA = {
    "observation": ["age", "tier", "member"],
    "action": "offer",
    "reward": "profit",
    "episode": "customer",
    "time": "week",
    "terminal": "left",
    "mask": "can_*",
    "propensity": "p",
    "categories": {"offer": ["none", "mail", "call"], "tier": ["basic", "gold"]},
}
TABLE = pa.table(ROWS)


def with_rows(**changes):
    return pa.table(ROWS | changes)


def test_rows_are_put_in_order_and_columns_become_numbers():
    data = read_table(TABLE, schema=SCHEMA, discount=0.5)
    # a: weeks 1, 2; week 3 has no s' and is left out, but it is the s' of week 2. b: weeks 1, 2 (ends).
    np.testing.assert_array_equal(data.observations, [[41, 1, 0, 0], [42, 0, 1, 1], [29, 1, 0, 1], [30, 0, 1, 1]])
    np.testing.assert_array_equal(data.next_observations, [[42, 0, 1, 1], [43, 0, 1, 0], [30, 0, 1, 1], [30, 0, 1, 1]])
    assert data.entries == ("age", "tier=basic", "tier=gold", "member")
    assert data.action_space == DiscreteActions(3)
    assert data.actions.tolist() == [1, 1, 2, 0]
    assert data.next_actions.tolist() == [1, 0, 0, 0]
    assert data.next_action_known.tolist() == [True, True, True, False]
    assert data.rewards.tolist() == [1, 8, 2, 4]
    assert data.returns.tolist() == [1 + 0.5 * (8 + 0.5 * 16), 8 + 0.5 * 16, 2 + 0.5 * 4, 4]
    assert data.terminals.tolist() == [False, False, False, True]
    assert data.timeouts.tolist() == [False, True, False, False]
    assert data.episodes.tolist() == [0, 0, 1, 1]
    assert data.masks is not None
    assert data.next_masks is not None
    # none, mail, call: the columns are found by the names of the actions.
    assert data.masks.tolist() == [[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert data.next_masks.tolist() == [[0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    assert data.propensities is not None
    assert data.propensities.tolist() == [0.25, 0.75, 1.0, 0.5]
    assert data.left_out == (("last row of an episode that was cut: s' is not logged", 1),)


def test_it_is_what_assemble_makes_of_the_ordered_arrays():
    data = read_table(TABLE, schema=SCHEMA)
    order = [1, 4, 3, 2, 0]
    one_hot = np.array([[t == "basic", t == "gold"] for t in ROWS["tier"]], np.float32)
    seen = np.column_stack([ROWS["age"], one_hot, ROWS["member"]])[order]
    columns = {
        "observations": seen,
        "actions": np.array([["none", "mail", "call"].index(str(one)) for one in ROWS["offer"]])[order],
        "rewards": np.array(ROWS["profit"])[order],
        "terminals": np.array(ROWS["left"])[order],
        "episodes": np.array([0, 0, 0, 1, 1]),
        "masks": np.column_stack([ROWS["can_none"], ROWS["can_mail"], ROWS["can_call"]])[order],
        "propensities": np.array(ROWS["p"])[order],
    }
    assert data.fingerprint() == assemble(columns, source="arrays", name="arrays").fingerprint()


@pytest.fixture
def files(tmp_path):
    parquet.write_table(TABLE, tmp_path / "rows.parquet")
    csv.write_csv(TABLE, tmp_path / "rows.csv")
    feather.write_feather(TABLE, tmp_path / "rows.feather")
    with pa.ipc.new_file(tmp_path / "rows.arrow", TABLE.schema) as file:
        file.write_table(TABLE)
    parquet.write_to_dataset(TABLE, tmp_path / "parts", partition_cols=["tier"])
    (tmp_path / "schema.toml").write_text(Schema.of(SCHEMA).to_toml())
    return tmp_path


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv", "rows.feather", "rows.arrow", "parts"])
def test_every_format_gives_the_same_table(files, name):
    data = dr3.load(f"{files / name}:schema={files / 'schema.toml'}")
    assert data.fingerprint() == read_table(TABLE, schema=SCHEMA).fingerprint()
    assert data.source == f"{files / name}:schema={files / 'schema.toml'}"
    assert data.name == name.partition(".")[0]


def test_data_frames_and_relations_take_the_same_way(files):
    pandas, polars, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    expected = read_table(TABLE, schema=SCHEMA).fingerprint()
    relation = duckdb.read_parquet(str(files / "rows.parquet"))
    for frame in (pandas.DataFrame(ROWS), polars.DataFrame(ROWS), relation):
        data = dr3.load(frame, schema=SCHEMA)
        assert data.fingerprint() == expected
        assert data.source is None
    assert dr3.load(str(files / "rows.parquet"), schema=files / "schema.toml").fingerprint() == expected


def test_a_schema_written_and_read_is_the_same(files):
    schema = Schema.of(SCHEMA | {"missing": {"age": 0.5, "tier": "flag"}, "step": 1.0, "ends": "timeout"})
    (files / "again.toml").write_text(schema.to_toml())
    assert Schema.of(files / "again.toml") == schema


def test_missing_numbers_are_filled_flagged_or_dropped():
    gone = with_rows(age=[30.0, 41.0, None, 43.0, float("nan")], tier=["gold", None, "basic", "gold", "gold"])
    filled = read_table(gone, schema=SCHEMA | {"missing": {"age": -1.0, "tier": "flag"}})
    assert filled.entries == ("age", "tier=basic", "tier=gold", "tier is missing", "member")
    np.testing.assert_array_equal(filled.observations[:, 0], [41, -1, -1, 30])
    np.testing.assert_array_equal(filled.observations[0, 1:4], [0, 0, 1])
    flagged = read_table(gone, schema=SCHEMA | {"missing": {"age": "flag", "tier": "flag"}})
    np.testing.assert_array_equal(flagged.observations[:, :2], [[41, 0], [0, 1], [0, 1], [30, 0]])


def test_a_dropped_row_interrupts_its_episode():
    gone = with_rows(age=[30.0, 41.0, 29.0, 43.0, None])  # week 2 of a
    with pytest.raises(UserError, match=r"no row|left"):
        read_table(gone.filter(pa.compute.equal(gone["customer"], "a")), schema=SCHEMA | {"missing": {"age": "drop"}})
    data = read_table(gone, schema=SCHEMA | {"missing": {"age": "drop"}})
    assert data.observations[:, 0].tolist() == [29, 30]  # weeks 1 and 3 of a do not follow each other
    assert dict(data.left_out) == {
        "'age' is missing": 1,
        "last row of an episode that was cut: s' is not logged": 2,
    }


def test_gaps_are_reported_and_cut_on_request():
    rows = {"c": [1] * 6, "t": [1, 2, 3, 5, 6, 7], "x": [0.0, 1, 2, 3, 4, 5], "a": [0, 1] * 3, "r": [1.0] * 6}
    schema = {"observation": ["x"], "action": "a", "reward": "r", "episode": "c", "time": "t", "ends": "terminal"}
    joined = read_table(pa.table(rows), schema=schema)
    assert len(joined) == 6
    assert "In 1 places 't' jumps by more than 1" in joined.remarks[0]
    cut = read_table(pa.table(rows), schema=schema | {"step": 1})
    assert cut.observations[:, 0].tolist() == [0, 1, 3, 4, 5]
    assert cut.timeouts.tolist() == [False, True, False, False, False]
    assert cut.episodes.tolist() == [0, 0, 1, 1, 1]
    assert "In 1 places the time jumps" in cut.remarks[0]


def test_rows_at_one_time_are_refused_or_one_is_kept():
    double = with_rows(week=[2, 1, 1, 2, 2])  # two rows of a in week 2
    with pytest.raises(
        UserError, match=r"row 3 and row 4 are both of episode 'a' at one time in 'week' \(1 such rows\)"
    ):
        read_table(double, schema=SCHEMA)
    first = read_table(double, schema=SCHEMA | {"duplicates": "first"})
    last = read_table(double, schema=SCHEMA | {"duplicates": "last"})
    assert (first.next_observations[0, 0], last.next_observations[0, 0]) == (43, 42)
    assert ("same episode and time as another row (duplicates = 'first')", 1) in first.left_out


def test_times_may_be_dates_and_gaps_then_are_in_seconds():
    days = [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in (2, 1, 1, 9, 2)]
    dated = with_rows(week=days)
    assert len(read_table(dated, schema=SCHEMA)) == 4
    assert len(read_table(dated, schema=SCHEMA | {"step": 86_400})) == 3


def test_how_episodes_end_is_asked_and_never_guessed():
    unknown = {name: value for name, value in SCHEMA.items() if name != "terminal"}
    with pytest.raises(UserError, match=r"nothing says how 2 episodes end .* ends = 'terminal'"):
        read_table(TABLE, schema=unknown)
    assert read_table(TABLE, schema=unknown | {"ends": "terminal"}).terminals.tolist() == [
        False,
        False,
        True,
        False,
        True,
    ]
    assert len(read_table(TABLE, schema=unknown | {"ends": "timeout"})) == 3


def test_without_an_episode_column_ends_cut():
    rows = {"x": [0.0, 1, 2, 3], "a": [0, 1, 0, 1], "r": [1.0] * 4, "done": [0, 1, 0, 1]}
    schema = {"observation": ["x"], "action": "a", "reward": "r", "terminal": "done"}
    data = read_table(pa.table(rows), schema=schema)
    assert data.episodes.tolist() == [0, 0, 1, 1]
    assert data.next_observations[:, 0].tolist() == [1, 1, 3, 3]


def test_what_comes_next_may_be_logged():
    rows = {
        "x": [0.0, 1.0, 2.0], "next_x": [1.0, 5.0, None], "a": [0, 1, 0], "next_a": [1, 1, None], "r": [1.0, 2.0, 3.0],
        "e": [0, 0, 1], "end": [False, False, True], "ok": [[0, 1], [1], [0]], "next_ok": [[1], [1, 0], None],
    }  # fmt: skip
    schema = {"observation": ["x"], "action": "a", "reward": "r", "episode": "e", "terminal": "end", "mask": "ok"}
    schema |= {"next_observation": ["next_x"], "next_action": "next_a", "next_mask": "next_ok"}
    data = read_table(pa.table(rows), schema=schema)
    assert data.next_observations[:, 0].tolist() == [1, 5, 2]
    assert data.next_actions.tolist() == [1, 1, 0]
    assert data.next_action_known.tolist() == [True, True, False]
    assert data.timeouts.tolist() == [False, True, False]
    assert data.masks is not None
    assert data.next_masks is not None
    assert data.masks.tolist() == [[1, 1], [0, 1], [1, 0]]
    assert data.next_masks.tolist() == [[0, 1], [1, 1], [1, 1]]


def test_lists_are_vectors_and_several_columns_are_a_continuous_action():
    rows = {
        "e": [0, 0, 0], "emb": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "u": [0.5, -2.0, 1.0], "v": [0.0, 1.0, 2.0],
        "r": [1.0] * 3,
    }  # fmt: skip
    schema = {"observation": ["emb"], "action": ["u", "v"], "reward": "r", "episode": "e", "ends": "timeout"}
    data = read_table(pa.table(rows), schema=schema | {"action_low": -2, "action_high": 2})
    assert data.action_space == ContinuousActions(2, -2.0, 2.0)
    assert data.actions.tolist() == [[0.5, 0.0], [-2.0, 1.0]]
    np.testing.assert_array_equal(data.observations, [[1, 2], [3, 4]])
    assert data.entries == ("emb[0]", "emb[1]")


def test_new_rows_become_what_the_learned_ones_were():
    data = read_table(TABLE, schema=SCHEMA)
    assert data.schema is not None
    assert data.masks is not None
    rows = [{name: ROWS[name][row] for name in ROWS} for row in (1, 4)]
    np.testing.assert_array_equal(encode_rows(data.schema, rows), data.observations[:2])
    np.testing.assert_array_equal(encode_masks(data.schema, rows), data.masks[:2])
    with pytest.raises(UserError, match=r"row 1 of 'tier' is 'silver', which is not among .*\['basic', 'gold'\]"):
        encode_rows(data.schema, [rows[0], rows[1] | {"tier": "silver"}])
    with pytest.raises(UserError, match=r"there is no column 'tier'"):
        encode_rows(data.schema, [{"age": 1.0, "member": True}])


def test_a_first_guess_names_what_it_can_and_asks_the_rest(files):
    text = guess_schema(files / "rows.parquet")
    assert 'episode = "customer"' in text
    assert 'action = "offer"' in text
    assert 'mask = "can_*"' in text
    assert '"tier" = ["basic", "gold"]' in text
    assert 'terminal = "left"' in text  # true in last rows alone
    (files / "guess.toml").write_text(text)
    assert len(dr3.load(f"{files / 'rows.parquet'}:schema={files / 'guess.toml'}")) == 4
    unknown = guess_schema(TABLE.drop_columns("left"))
    assert 'ends = "?"' in unknown
    (files / "guess.toml").write_text(unknown)
    with pytest.raises(UserError, match=r"guess\.toml: 'ends' must be 'terminal' or 'timeout', not '\?'"):
        dr3.load(f"{files / 'rows.parquet'}:schema={files / 'guess.toml'}")


STEPS = {"e": [1, 1, 1, 2, 2, 2], "t": [0, 1, 2, 0, 1, 2], "x": [0.0, 1, 2, 5, 6, 7], "a": [0, 1] * 3, "r": [1.0] * 6}
STEPS |= {"end": [False, False, True] * 2}
PLAIN = {"observation": ["x"], "action": "a", "reward": "r", "episode": "e", "time": "t", "terminal": "end"}


def test_an_episode_whose_last_row_was_dropped_is_cut_whatever_its_others_ends_are():
    rows = STEPS | {"x": [0.0, 1, None, 5, 6, 7]}
    ends = {name: value for name, value in PLAIN.items() if name != "terminal"} | {"ends": "terminal"}
    data = read_table(pa.table(rows), schema=ends | {"missing": {"x": "drop"}})
    assert data.observations[:, 0].tolist() == [0, 5, 6, 7]
    assert data.terminals.tolist() == [False, False, False, True]
    assert data.timeouts.tolist() == [True, False, False, False]


def test_a_dropped_row_without_an_episode_cuts_no_other_one():
    data = read_table(pa.table(STEPS | {"e": [1, 1, 1, 2, None, 2]}), schema=PLAIN | {"missing": {"e": "drop"}})
    assert data.episodes.tolist() == [0, 0, 0, 1, 1]
    assert data.remarks[0].startswith("1 rows that were left out name no episode or no time")


def test_a_number_may_stand_for_a_missing_reward_or_flag_and_is_said():
    rows = STEPS | {"r": [1.0, None, 1, 1, 1, 1], "end": [None, None, True, None, None, True]}
    data = read_table(pa.table(rows), schema=PLAIN | {"missing": {"r": 0.5, "end": 0}})
    assert data.rewards.tolist() == [1, 0.5, 1, 1, 1, 1]
    assert data.terminals.tolist() == STEPS["end"]
    assert "'r' was missing in 1 rows and taken to be 0.5." in data.remarks
    assert "'end' was missing in 4 rows and taken to be 0." in data.remarks


def test_where_the_logged_next_observation_is_not_the_next_row_the_episode_is_cut():
    rows = STEPS | {"next": [1.0, 1.5, 0, 6.0000001, 7, 0]}
    data = read_table(pa.table(rows), schema=PLAIN | {"next_observation": ["next"]})
    assert data.episodes.tolist() == [0, 0, 1, 2, 2, 2]
    assert data.timeouts.tolist() == [False, True, False, False, False, False]
    assert data.next_action_known.tolist() == [True, False, False, True, True, False]
    np.testing.assert_allclose(data.returns, [1.99, 1, 1, 2.9701, 1.99, 1])
    assert "In 1 rows the logged s' is not the observation of the row behind it" in data.remarks[0]
    masked = PLAIN | {"next_observation": ["next"], "mask": "ok"}
    with pytest.raises(UserError, match="name 'next_mask'"):
        read_table(pa.table(rows | {"ok": [[0, 1]] * 6}), schema=masked)


@pytest.mark.parametrize(
    ("rows", "schema", "sentence"),
    [
        ({"ok": [[True, None]] * 6}, {"mask": "ok"}, "row 0 of 'ok' has an entry that is missing"),
        (
            {"ok": [[0, 1]] * 6, "n": pa.array([[]] * 6, pa.list_(pa.int64()))},
            {"mask": "ok", "next_mask": "n"},
            "row 0 of 'n' allows no action",
        ),
        ({"r": [1.0, None] * 3}, {}, r"\[missing\] r = 0.0 \(a number\) or 'drop'"),
        ({"a": [0, None] * 3}, {}, r"\[missing\] a = 'drop'"),
        ({"a": [0, None] * 3}, {"missing": {"a": 0}}, "the schema's rule for missing 'a' is 0, but there it can be"),
        ({"r": [1.0, None] * 3}, {"missing": {"r": "flag"}}, "the schema's rule for missing 'r' is 'flag'"),
        ({}, {"missing": {"x": "?"}}, "leaves open what to do where 'x' is missing"),
        ({}, {"sizes": {"x": "2"}}, "the size of 'x' must be a whole number above 0"),
        ({}, {"num_actions": True}, "'num_actions' must be a whole number from 1 to 65536"),
        ({}, {"action": ["x"], "action_low": 5, "action_high": 1}, "'action_low' is 5, but it must be below"),
        ({"x": pa.nulls(6)}, {}, "'x' is missing in 6 rows"),
    ],
)
def test_what_cannot_be_known_is_refused(rows, schema, sentence):
    with pytest.raises(UserError, match=sentence):
        read_table(pa.table(STEPS | rows), schema=PLAIN | schema)


def test_a_new_row_may_miss_what_the_schema_fills():
    more = {"categories": {"tier": ["gold", "basic"]}, "missing": {"x": "flag", "tier": "flag"}}
    schema = PLAIN | {"observation": ["x", "tier"]} | more
    data = read_table(pa.table(STEPS | {"tier": ["gold", None] * 3}), schema=schema)
    assert data.schema is not None
    assert encode_rows(data.schema, [{"x": None, "tier": "gold"}]).tolist() == [[0, 1, 1, 0, 0]]
    assert encode_rows(data.schema, [{"x": 2.0, "tier": None}]).tolist() == [[2, 0, 0, 0, 1]]
    with pytest.raises(UserError, match="no rows to encode"):
        encode_rows(data.schema, [])


def test_columns_of_bytes_are_pictures_beside_the_numbers():
    pixels = np.arange(6 * 12, dtype=np.uint8).reshape(6, 2, 3, 2)
    rows = pa.table(STEPS | {"photo": [one.tobytes() for one in pixels]})
    schema = PLAIN | {"observation": ["x", "photo"], "pictures": {"photo": [2, 3, 2]}}
    data: Any = read_table(rows, schema=schema)
    assert [(part.name, part.shape) for part in data.parts.parts] == [("numbers", (1,)), ("photo", (2, 3, 2))]
    np.testing.assert_array_equal(data.parts.unpack(data.observations)["photo"], pixels)
    np.testing.assert_array_equal(data.parts.unpack(data.next_observations)["photo"][:2], pixels[1:3])
    assert data.vectors[:,][:, 0].tolist() == STEPS["x"]
    assert data.entries == ("x",)
    lists = rows.set_column(6, "photo", pa.array([one.ravel().tolist() for one in pixels]))
    assert read_table(lists, schema=schema).fingerprint() == data.fingerprint()
    assert data.schema is not None
    assert Schema.of(data.schema) == data.schema
    again = encode_rows(data.schema, rows.slice(2, 1))
    np.testing.assert_array_equal(again[0], data.observations[2])
    for changed, sentence in (
        ({"pictures": {"photo": [2, 3, 3]}}, r"row 0 of 'photo' has 12 bytes, but a picture of 2 x 3 x 3 has 18"),
        ({"pictures": {}}, r"\[pictures\] photo = \[48, 48, 3\]"),
        ({"pictures": {"photo": [2, 3]}}, r"the picture 'photo' needs \[height, width, channels\]"),
        ({"pictures": {"x": [1, 1, 1], "photo": [2, 3, 2]}}, "a picture is a column of bytes"),
    ):
        with pytest.raises(UserError, match=sentence):
            read_table(rows, schema=schema | changed)


@pytest.mark.slow
def test_a_run_knows_how_new_rows_become_observations(files, tmp_path):
    data = dr3.load(files / "rows.parquet", schema=files / "schema.toml")
    runs = dr3.train(data, dr3.DQN(hidden=(2,), batch_size=2), steps=1, out=tmp_path / "run", progress=False)
    schema = dr3.Runs(runs.path).schema
    assert schema is not None
    assert schema == data.schema
    rows = TABLE.slice(0, 1).to_pylist()
    np.testing.assert_array_equal(encode_rows(schema, rows), data.observations[-1:])


def test_files_of_one_folder_may_differ_in_numbers_but_not_in_kind(tmp_path):
    parquet.write_table(pa.table(STEPS | {"x": [0, 1, 2, 5, 6, 7]}), tmp_path / "0.parquet")
    parquet.write_table(pa.table(STEPS | {"e": [3] * 3 + [4] * 3, "x": [0.5] * 6}), tmp_path / "1.parquet")
    assert read_table(tmp_path, schema=PLAIN).observations[:, 0].tolist() == [0, 1, 2, 5, 6, 7, *[0.5] * 6]
    parquet.write_table(pa.table(STEPS | {"x": ["a"] * 6}), tmp_path / "2.parquet")
    with pytest.raises(UserError, match=r"2\.parquet: 'x' holds values of type string, but in .*0\.parquet of type"):
        read_table(tmp_path, schema=PLAIN)
    (tmp_path / "twice.csv").write_text("x,x,a\n1,1,0\n")
    with pytest.raises(UserError, match=r"twice\.csv: there are two columns 'x'"):
        read_table(tmp_path / "twice.csv", schema=PLAIN)
