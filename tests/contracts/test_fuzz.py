"""Damaged files of every format: a table or one sentence, quickly, and in no more memory than was declared.

Every case follows from its number, so that one that fails is repeated by itself. `make fuzz` tries many more.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import shutil
import signal
import tracemalloc
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pytest

import dr3
from dr3.data import READERS, Transitions, assemble, write_dqn_replay
from dr3.data.convert import write
from dr3.data.tables import Schema, guess_schema
from dr3.errors import UserError
from dr3.export import export_policy
from dr3.export.probe import read_probe
from dr3.export.replay import read_contract
from dr3.files import write_json
from dr3.runs import Runs
from dr3.runs.results import read_results
from dr3.sweeps import read_grid

CASES = int(os.environ.get("DR3_FUZZ", "25"))  # of each format
FIRST = int(os.environ.get("DR3_FUZZ_FIRST", "0"))
SECONDS = 10
ROOM = 32 * 2**20  # bytes beside twice the declared size: what libraries take for themselves
# The same for the whole process, with what HDF5, Arrow and zlib take past Python's own count, and their code.
ROOM_OF_PROCESS = 256 * 2**20
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

ODD = (b"-1", b"0", b"1e300", b"NaN", b"99999999999999999999", b'"a"', b"null", b"[]", b"1e9", b"2147483648")

Maker = Callable[[Path], Path]


def table(kind: str) -> Transitions:
    random = np.random.default_rng(0)
    rows = 40
    seen = random.normal(size=(rows + 1, 3)).astype(np.float32)
    if kind == "pictures":
        seen = random.integers(0, 256, size=(rows + 1, 4, 4, 1), dtype=np.uint8)
    columns = {
        "observations": seen[:-1],
        "next_observations": seen[1:].copy(),
        "rewards": random.normal(size=rows).astype(np.float32),
        "terminals": np.arange(rows) % 10 == 9,
        "world": np.array("CartPole-v1"),
        "actions": random.integers(4, size=rows) if kind != "continuous" else random.uniform(-1, 1, size=(rows, 2)),
    }
    return assemble(columns, source="made up", name="made-up")


def written(form: str, name: str, kind: str) -> Maker:
    def make(folder: Path) -> Path:
        write(folder / name, table(kind), form=form)
        return folder / name

    return make


def raw_d4rl(folder: Path) -> Path:
    import h5py

    with h5py.File(folder / "hopper-medium.hdf5", "w") as file:
        file["observations"], file["actions"] = np.ones((30, 3)), np.zeros((30, 2))
        file["rewards"], file["terminals"] = np.arange(30.0), np.arange(30) % 7 == 6
        file["infos/qpos"] = np.zeros((30, 2))
    return folder / "hopper-medium.hdf5"


def parquet(folder: Path) -> Path:
    """Minari's layout with its third kind of file."""
    import pyarrow.ipc
    import pyarrow.parquet

    write(folder / "set", table("continuous"), form="minari-arrow")
    for file in (folder / "set").rglob("*.arrow"):
        with pyarrow.ipc.open_file(file) as stored:
            pyarrow.parquet.write_table(stored.read_all(), file.with_suffix(".parquet"))
        file.unlink()
    metadata = folder / "set" / "data" / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"arrow"', '"parquet"'))
    return folder / "set"


def replay(folder: Path) -> Path:
    random = np.random.default_rng(0)
    write_dqn_replay(
        folder / "game",
        frames=random.integers(0, 256, (30, 4, 4), np.uint8),
        actions=random.integers(3, size=30).astype(np.int32),
        rewards=np.ones(30, np.float32),
        terminals=(np.arange(30) % 9 == 8).astype(np.uint8),
        rows_per_file=32,
    )
    return folder / "game"


def cog(folder: Path) -> Path:
    image = np.zeros((3, 3, 3), np.uint8)
    steps = {"actions": [np.zeros(2)] * 4, "rewards": [0.0] * 4, "terminals": [False] * 4}
    seen = {"observations": [{"image": image}] * 4, "next_observations": [{"image": image + 1}] * 4}
    np.save(folder / "cog.npy", np.array([{**steps, **seen}] * 2, dtype=object), allow_pickle=True)
    return folder / "cog.npy"


SCHEMA = {"observation": ["a", "b"], "action": "offer", "reward": "profit", "episode": "who", "terminal": "left"}


def rows(ending: str) -> Maker:
    """A table of decisions, to be read with `SCHEMA`."""

    def make(folder: Path) -> Path:
        import pyarrow
        from pyarrow import csv, feather, parquet

        random, count = np.random.default_rng(0), 40
        columns = {"a": random.normal(size=count), "b": np.arange(count), "profit": random.normal(size=count)}
        columns |= {"offer": random.choice(["none", "mail"], count), "who": np.arange(count) // 8}
        made = pyarrow.table(columns | {"left": np.arange(count) % 8 == 7})
        write_rows = {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}[ending]
        write_rows(made, str(folder / f"a.{ending}"))
        return folder / f"a.{ending}"

    return make


MAKERS: dict[str, Maker] = {
    "npz": written("npz", "a.npz", "discrete"),
    "npz of pictures": written("npz", "a.npz", "pictures"),
    "hdf5": written("d4rl", "a.hdf5", "continuous"),
    "D4RL": raw_d4rl,
    "Minari in HDF5": written("minari", "set", "continuous"),
    "Minari in Arrow": written("minari-arrow", "set", "continuous"),
    "Minari in Parquet": parquet,
    "DQN replay": replay,
    "COG": cog,
    **{f"rows in {ending}": rows(ending) for ending in ("csv", "parquet", "arrow")},
}


def test_every_ending_that_can_be_read_is_tried():
    tried = {".npz", ".hdf5", ".h5", ".npy", ".parquet", ".pq", ".csv", ".arrow", ".feather", ".ipc"}
    assert set(READERS.built_in) == tried, "give a new format a maker here"


def mutated(content: bytes, random: np.random.Generator) -> bytes:
    """One damage: bits, bytes, or whole stretches of them; in a text also another number."""
    if not content:
        return random.bytes(1)
    changed, size = bytearray(content), len(content)
    place = int(random.integers(max(1, size)))
    length = int(min(size - place, 2 ** random.integers(1, 10)))
    numbers = list(re.finditer(rb"-?[0-9]+", content)) if size < 10_000 else []
    match int(random.integers(9 if numbers else 8)):
        case 0 | 1 | 2:
            changed[place] ^= 1 << int(random.integers(8))
        case 3:
            changed[place] = int(random.integers(256))
        case 4:
            del changed[place:]
        case 5:
            del changed[place : place + length]
        case 6:
            changed[place : place + length] = bytes(length)
        case 7:
            changed[place:place] = random.bytes(length) if random.integers(2) else content[place : place + length]
        case _:
            found = numbers[int(random.integers(len(numbers)))]
            changed[found.start() : found.end()] = ODD[int(random.integers(len(ODD)))]
    return bytes(changed)


def damage(path: Path, random: np.random.Generator) -> int:
    """Change one file of a format; how many bytes all of them have."""
    files = sorted(file for file in [path, *path.rglob("*")] if file.is_file())
    chosen = files[int(random.integers(len(files)))]
    chosen.write_bytes(mutated(chosen.read_bytes(), random))
    return sum(file.stat().st_size for file in files)


def memory_of_process(what: str) -> int:
    """Bytes: VmRSS is what is resident now, VmHWM the most there was; 0 where the system does not tell."""
    found = re.search(rf"{what}:\s*([0-9]+) kB", STATUS.read_text()) if STATUS.exists() else None
    return 1024 * int(found[1]) if found else 0


def forget_most() -> None:
    """Count the most from here on."""
    with contextlib.suppress(OSError):
        FORGET.write_text("5")


class Hung(BaseException):
    """No reader may take it for damage."""


def hung(number: int, frame: object) -> None:
    raise Hung(f"it took more than {SECONDS} seconds")


@contextlib.contextmanager
def quickly_and_in_little(what: str, size: int) -> Generator[None]:
    """Within it, nothing but a UserError, no more than `SECONDS`, and not much more memory than twice `size`."""
    faulthandler.dump_traceback_later(30 * SECONDS, exit=True)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of its own time: other processes may have the cores
    forget_most()
    before = memory_of_process("VmRSS")
    said: UserError | None = None
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UserError as error:
        said = error
    except BaseException as error:
        raise AssertionError(f"{what}: {error!r}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 2 * size + ROOM, f"{what}: {peak:,} bytes for a file of {size:,}"
    taken = memory_of_process("VmHWM") - before
    assert taken < 2 * size + ROOM_OF_PROCESS, f"{what}: {taken:,} bytes for a file of {size:,}"
    if said is not None:
        assert "\n" not in str(said), f"{what}: {said}"
        raise said


def refusals(form: str, number: int, whole: Path, copy: Path, look: Callable[[Path], object]) -> int:
    """How many of the damaged copies are refused; the others can be looked at."""
    refused = 0
    signal.signal(signal.SIGPROF, hung)
    for case in range(FIRST, FIRST + CASES):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole.parent, copy)
        size = damage(copy / whole.name, np.random.default_rng((number, case)))
        try:
            with quickly_and_in_little(f"{form}, case {case}", size):
                look(copy / whole.name)
        except UserError:
            refused += 1
    return refused


@pytest.mark.parametrize("form", MAKERS)
def test_a_damaged_file_is_a_table_or_a_sentence(form, tmp_path):
    if form not in ("npz", "npz of pictures", "DQN replay", "COG"):
        pytest.importorskip("h5py")
        pytest.importorskip("pyarrow")
    whole = MAKERS[form](Path((tmp_path / "whole").mkdir() or tmp_path / "whole"))

    def look(copy: Path) -> None:
        loaded = dr3.load(copy, allow_pickle=True, schema=SCHEMA if form.startswith("rows") else None)
        assert len(loaded.fingerprint()) == 64

    assert refusals(form, list(MAKERS).index(form), whole, tmp_path / "copy", look), "not one case was noticed"


@pytest.mark.parametrize("form", ["rows in csv", "rows in parquet", "rows in arrow"])
def test_a_schema_is_guessed_of_a_damaged_table_or_it_is_said(form, tmp_path):
    pytest.importorskip("pyarrow")
    whole = MAKERS[form](Path((tmp_path / "whole").mkdir() or tmp_path / "whole"))
    refusals(form, 100 + list(MAKERS).index(form), whole, tmp_path / "copy", guess_schema)


def look_at_run(folder: Path) -> None:
    runs = Runs(folder)
    assert runs.labels is not None
    assert "dqn" in repr(runs)
    assert runs.metrics is not None
    assert len(runs.returns) == len(runs)
    assert runs.place() is not None
    assert len(runs.critics()) == len(runs)


def look_at_export(policy: Path) -> None:
    record = read_contract(policy)
    read_probe(policy.with_name(record["probe"]["file"]))


def look_at_grid(file: Path) -> None:
    for task in read_grid(file, print):
        assert task.name


GRID = """
steps = 200
data = ["a.npz", "a.npz:fraction=0.5"]
seeds = [1, 2]
regularizers = ["dr3:0.1"]
[methods.dqn]
hidden = [8]
learning_rate = 1e-3
"""
RESULT = '{"algorithm": "CQL", "task": "t", "seed": 0, "step": 1, "returns": [1, 2.5]}\n'
MEANING = Schema.of(SCHEMA | {"missing": {"a": 0.5}, "sizes": {"b": 3}, "num_actions": 4})
TEXTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "schema.toml": (MEANING.to_toml(), Schema.of),
    "grid.toml": (GRID, look_at_grid),
    "results.jsonl": (2 * RESULT, read_results),
}


def test_a_damaged_run_is_a_run_or_a_sentence(copied_run, tmp_path):
    write_json(copied_run / "selection.json", {"member": 1, "step": 20})
    (tmp_path / "whole").mkdir()
    whole = copied_run.rename(tmp_path / "whole" / "run")
    assert refusals("run", 200, whole, tmp_path / "copy", look_at_run)


def test_a_damaged_export_is_one_or_a_sentence(small_run, tmp_path):
    export_policy(Runs(small_run), tmp_path / "whole" / "policy.npz", to="npz")

    def damaged_beside(policy: Path) -> None:
        look_at_export(policy.parent / "policy.npz")

    (tmp_path / "whole").rename(tmp_path / "exported")
    (tmp_path / "whole").mkdir()
    whole = (tmp_path / "exported").rename(tmp_path / "whole" / "exported")
    assert refusals("export", 201, whole, tmp_path / "copy", lambda folder: damaged_beside(folder / "policy.npz"))


@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_text_is_one_or_a_sentence(name, tmp_path):
    (tmp_path / "whole").mkdir()
    whole = tmp_path / "whole" / name
    whole.write_text(TEXTS[name][0])
    assert refusals(name, 202 + list(TEXTS).index(name), whole, tmp_path / "copy", TEXTS[name][1])
