"""The gate that every reader passes."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.data import READERS, read, read_dqn_replay, read_minari, read_npz
from dr3.data.d4rl import unpacked_bytes
from dr3.data.gate import announce, array_header, forcing, gated, read_array
from dr3.errors import UserError
from dr3.registry import _added, register


def test_every_reader_is_gated():
    for reader in (*READERS.built_in.values(), read_minari, read_dqn_replay):
        assert getattr(reader, "gated", False), reader.__name__


def test_whatever_a_reader_raises_is_one_sentence():
    @gated
    def reader(path, *, discount=0.9):
        raise KeyError("some\nthing")

    with pytest.raises(UserError, match=r"a\.dat: it is damaged .*KeyError: 'some\\nthing'"):
        reader("a.dat", discount=0.5)


def test_a_plugins_reader_passes_too(tmp_path):
    (tmp_path / "a.odd").write_text("x")
    try:
        register(lambda path, *, discount: {}["x"], reader=".odd")
        with pytest.raises(UserError, match="damaged"):
            read(tmp_path / "a.odd")
    finally:
        _added["reader"].pop(".odd")


@pytest.mark.parametrize("ending", [".npz", ".hdf5", ".npy"])
def test_a_pipe_is_not_waited_for(tmp_path, ending):
    if ending == ".hdf5":
        pytest.importorskip("h5py")
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    with pytest.raises(UserError, match="pipe or device"):
        read(path, allow_pickle=True)


def test_gigabytes_are_announced_first(monkeypatch):
    with pytest.raises(UserError, match=r"a: it unpacks to 5\.0 GB from 1\.0 MB.*--force"):
        announce("a", 5 * 10**9, 10**6)
    with forcing(True):
        announce("a", 5 * 10**9, 10**6)
    monkeypatch.setenv("DR3_FORCE", "1")
    announce("a", 5 * 10**9, 10**6)


def test_an_archive_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("dr3.data.gate.LARGE", 2**20)
    columns: dict[str, np.ndarray] = {"observations": np.zeros((2**17, 4)), "actions": np.zeros(2**17, np.int8)}
    columns |= {"rewards": np.zeros(2**17), "terminals": np.zeros(2**17, np.bool_)}
    np.savez_compressed(tmp_path / "a.npz", **columns)  # ty: ignore
    with pytest.raises(UserError, match=r"a\.npz: it unpacks to 0\.0 GB"):
        read_npz(tmp_path / "a.npz")
    with forcing(True):
        assert len(read_npz(tmp_path / "a.npz")) == 2**17 - 1
    assert invoke(["data", "convert", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]) == 2
    assert "--force" in capsys.readouterr().err
    assert invoke(["data", "convert", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--force"]) == 0
    assert "DR3_FORCE" not in os.environ


def stream(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3))), np.array("word")])
def test_an_array_comes_back(array):
    content = stream(array)
    np.testing.assert_array_equal(
        read_array(io.BytesIO(content), "a", stored=len(content), size=len(content)), array, strict=True
    )


def test_a_header_is_not_believed():
    content = stream(np.zeros(10))
    for place in range(len(content) - 80):  # the header, bit by bit
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            with suppress(UserError):
                read_array(io.BytesIO(changed), "a", stored=len(content), size=len(content))
    longer = content.replace(b"(10,)", b"(9999999999,)").replace(b"        \n", b"\n")
    with pytest.raises(UserError):
        read_array(io.BytesIO(longer), "a", stored=len(content))


def test_pickles_are_refused_by_their_header():
    with pytest.raises(UserError, match="pickled"):
        array_header(io.BytesIO(stream(np.array([None]))), "a")


def test_an_archive_of_another_kind_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("observations.npy", b"no array")
    with pytest.raises(UserError, match=r"a\.npz: "):
        read_npz(tmp_path / "a.npz")


def test_data_of_another_file_is_not_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["observations"] = np.zeros((4, 2))
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["observations"] = h5py.ExternalLink("other.hdf5", "/observations")
    with h5py.File(tmp_path / "b.hdf5", "w") as file:
        raw = [(str(tmp_path / "other.hdf5"), 0, 64)]
        file.create_dataset("observations", (4, 2), dtype="<f8", external=raw)
    for name in ("a.hdf5", "b.hdf5"):
        with pytest.raises(UserError, match="lies in another file"):
            read(tmp_path / name)


def test_a_chunk_is_no_smaller_than_it_claims(tmp_path):
    """HDF5 unpacks whole chunks: 48 bytes of rows may be said to lie in one of gigabytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        item = file.create_dataset("observations", (4, 3), "f4", maxshape=(None, 3), chunks=(10**8, 3))
        assert unpacked_bytes(item) == 1_200_000_000  # which `announce` refuses


def test_rows_that_no_file_of_its_size_can_hold_are_not_filled(tmp_path):
    """HDF5 fills with zeros what was never written, and takes 400 bytes for each chunk of that."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "claims.hdf5", "w") as file:
        for name, shape in {"observations": (10**6, 3), "actions": (10**6, 1), "rewards": (10**6,)}.items():
            file.create_dataset(name, shape, "f4", chunks=(10, *shape[1:]))
        file["terminals"] = np.zeros(10, np.bool_)
    with pytest.raises(UserError, match=r"claims\.hdf5: its '\w+' claims 1,000,000 rows, and cannot hold them"):
        read(tmp_path / "claims.hdf5", limit=5)


def test_a_group_of_rows_is_as_large_as_it_claims(tmp_path, monkeypatch):
    """One text of 40 MB in a column that the schema reads as a category: a few thousand bytes of Parquet."""
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    monkeypatch.setattr("dr3.data.gate.LARGE", 2**20)
    columns = {"a": [0.5], "offer": ["x" * 40 * 2**20], "profit": [1.0]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", compression="zstd")
    meaning = {"observation": ["a"], "action": "offer", "reward": "profit", "categories": {"offer": ["none", "mail"]}}
    with pytest.raises(UserError, match=r"unpacks to 0\.0 GB"):
        read(tmp_path / "a.parquet", schema=meaning)
