"""A table that is unpacked into a file of rows, and mapped from there, is the same table."""

from __future__ import annotations

import os

import numpy as np
import pytest

import dr3
from dr3.data import read_table
from dr3.data.mapped import AT_ONCE, gather, is_mapped
from dr3.errors import UserError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
SCHEMA = {
    "observation": ["x*"],
    "action": "a",
    "reward": "r",
    "episode": "e",
    "time": "t",
    "terminal": "end",
    "mask": "ok_*",
    "categories": {},
}


def log(rows: int = 3000, length: int = 20):
    """Rows in no order at all; every third episode ends."""
    random = np.random.default_rng(0)
    number = random.permutation(rows)
    episode, time = number // length, number % length
    actions = random.integers(3, size=rows)
    columns = {f"x{place}": random.normal(size=rows).astype(np.float32) for place in range(4)}
    columns |= {"e": episode, "t": time, "a": actions, "r": random.normal(size=rows)}
    columns |= {"end": (time == length - 1) & (episode % 3 == 0)}
    columns |= {f"ok_{action}": (actions == action) | (random.random(rows) < 0.5) for action in range(3)}
    return pa.table(columns)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    parquet.write_table(log(), path, row_group_size=700)
    return path


def test_unpacked_rows_are_those_in_memory(file, tmp_path, monkeypatch):
    resident = read_table(file, schema=SCHEMA)
    mapped = read_table(file, schema=SCHEMA, cache=tmp_path)
    assert is_mapped(mapped.observations)
    assert not is_mapped(resident.observations)
    assert mapped.fingerprint() == resident.fingerprint()
    assert (mapped.left_out, mapped.remarks, mapped.schema) == (resident.left_out, resident.remarks, resident.schema)
    assert not [name for name in os.listdir(tmp_path) if name.endswith("unfinished")]
    # A second time nothing is unpacked.
    monkeypatch.setattr("dr3.data.tables.read.order_rows", None)
    again = read_table(file, schema=SCHEMA, cache=tmp_path)
    assert again.fingerprint() == resident.fingerprint()
    # Another discount is another column of returns over the same rows.
    assert read_table(file, schema=SCHEMA, cache=tmp_path, discount=0.5).returns_discount == 0.5
    with pytest.raises(UserError):  # another schema makes other rows, so they are read
        read_table(file, schema=SCHEMA | {"observation": ["x0"]}, cache=tmp_path)


def test_many_rows_are_drawn_some_at_a_time(file, tmp_path):
    resident = read_table(file, schema=SCHEMA)
    mapped = read_table(file, schema=SCHEMA, cache=tmp_path)
    index = np.random.default_rng(1).integers(len(resident), size=2 * AT_ONCE + 7)
    drawn = mapped.rows(index)
    assert not is_mapped(drawn.observations)
    assert drawn.fingerprint() == resident.rows(index).fingerprint()
    np.testing.assert_array_equal(gather({"r": mapped.rewards}, index)["r"], resident.rewards[index])


def test_a_disk_without_room_is_said_before(file, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(UserError, match=r"log\.parquet: unpacking it takes up to .* GB in .*:cache=FOLDER"):
        read_table(file, schema=SCHEMA, cache=tmp_path)


def test_what_was_cut_short_is_not_mapped(file, tmp_path):
    read_table(file, schema=SCHEMA, cache=tmp_path)
    (rows,) = tmp_path.glob("*.rows")
    os.truncate(rows, rows.stat().st_size - 1)
    with pytest.raises(UserError, match="cut short"):
        read_table(file, schema=SCHEMA, cache=tmp_path)


@pytest.mark.parametrize("cut", [None, 0.0, 5.0], ids=["no-next", "next", "next-beyond-a-cut"])
def test_an_hdf5_file_unpacked_is_the_one_in_memory(tmp_path, cut, monkeypatch):
    h5py = pytest.importorskip("h5py")
    random, rows = np.random.default_rng(2), 300
    seen = random.normal(size=(rows, 3))
    columns = {"observations": seen, "actions": random.uniform(-1, 1, (rows, 2)), "rewards": random.normal(size=rows)}
    columns |= {"terminals": np.arange(rows) % 40 == 39, "timeouts": np.arange(rows) % 70 == 69}
    if cut is not None:  # what the last row led to is not the next row, and with 5.0 neither is that of row 17
        columns["next_observations"] = np.concatenate([seen[1:], seen[:1]])
        columns["next_observations"][17] += cut
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        for name, values in columns.items():
            file[name] = values
    monkeypatch.setattr("dr3.data.observed.CHUNK", 64)
    resident = dr3.load(tmp_path / "log.hdf5")
    mapped = dr3.load(f"{tmp_path / 'log.hdf5'}:cache={tmp_path / 'cache'}")
    assert is_mapped(mapped.observations)
    assert mapped.fingerprint() == resident.fingerprint()
    dr3.data.write(tmp_path / "ours.hdf5", resident)
    ours = dr3.load(f"{tmp_path / 'ours.hdf5'}:cache={tmp_path / 'cache'}")
    assert ours.fingerprint() == resident.fingerprint()
    with h5py.File(tmp_path / "log.hdf5", "r+") as file:
        file["observations"][201, 1] = np.nan
    with pytest.raises(UserError, match=r"log\.hdf5: row 201 of 'observations' holds a number that is not finite"):
        dr3.load(f"{tmp_path / 'log.hdf5'}:cache={tmp_path / 'again'}")


@pytest.mark.slow
def test_a_run_on_mapped_rows_has_the_digest_of_one_in_memory(file, tmp_path):
    (tmp_path / "schema.toml").write_text(dr3.data.Schema.of(SCHEMA).to_toml())
    method = dr3.DQN(hidden=(8,), batch_size=16)
    digests = []
    plain = f"{file}:schema={tmp_path / 'schema.toml'}"
    for place, word in (("device", plain), ("host", f"{plain}:cache={tmp_path / 'cache'}")):
        data = dr3.load(word)
        runs = dr3.train(data, method, steps=20, out=tmp_path / place, data_on=place, progress=False)
        digests.append(dr3.digest(runs))
    assert digests[0] == digests[1]
