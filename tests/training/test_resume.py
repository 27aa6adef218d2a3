"""A run that was stopped, killed or damaged ends bit for bit as one that was not."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import signal
import sys
import zipfile
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.regularizers import DR3
from dr3.runs import Runs, digest
from dr3.runs.checkpoints import Checkpoints
from dr3.runs.folder import RunFolder
from dr3.runs.member import Member
from dr3.training import execution, train


@pytest.fixture
def whole(run, tmp_path):
    """The digest of a run that nothing happened to."""
    return digest(run(out=tmp_path / "whole"))


@pytest.mark.parametrize("chunk", [1, 7, 60, None])
def test_the_chunk_length_changes_nothing(run, tmp_path, whole, chunk):
    assert digest(run(out=tmp_path / "run", chunk=chunk)) == whole


def test_a_run_of_many_short_stretches_comes_to_its_end(run, tmp_path):
    """The chunk length is looked for anew after each of 600; growing fourfold at each, it would leave the floats."""
    runs = run(out=tmp_path / "run", steps=600, metrics_every=1, evaluate_every=600)
    assert runs.status["step"] == 600


def test_a_longer_run_is_the_shorter_one_gone_on_with(run, tmp_path, whole):
    """At 20, 40: where the shorter run's last measurement is one of the longer run's own."""
    for steps in (20, 40, 60):
        runs = run(out=tmp_path / "run", steps=steps, chunk=steps // 4)
        assert runs.status == {"step": steps, "finished": True, "diverged": {}}
    assert digest(runs) == whole


@pytest.mark.parametrize("name", ["adamw", "sgd", "rmsprop"])
def test_going_on_is_exact_with_every_optimizer(run, tmp_path, logged, method, whole, name):
    settings: Any = {"metrics_every": 10, "evaluate_every": 20, "env": None, "progress": False}
    other: Any = dataclasses.replace(method, optimizer=name)
    at_once = train(logged, other, steps=40, out=tmp_path / "at-once", **settings)
    for steps in (20, 40):
        in_two = train(logged, other, steps=steps, out=tmp_path / "in-two", **settings)
    assert digest(in_two) == digest(at_once) != whole
    assert at_once.members[0].method == other


def test_adam_is_not_mentioned_so_that_older_runs_keep_their_names(run, tmp_path):
    """A record without an optimizer is Adam's, and one of another cannot be gone on with."""
    runs = run(out=tmp_path / "run", steps=20)
    assert "optimizer" not in json.loads((runs.path / "config.json").read_text())["members"][0]["method"]
    member: Any = Runs(runs.path).members[0]
    assert member.method.optimizer == "adam"
    other: Any = dataclasses.replace(member, method=dataclasses.replace(member.method, optimizer="sgd"))
    assert Member.from_json(other.to_json()) == other != member


def test_a_run_stays_with_the_cores_it_began_with(run, tmp_path, monkeypatch):
    """On a machine of another size the order of a network's sums, and so their last bits, would be another."""
    for cores in (1, 8):
        monkeypatch.setattr(execution, "available_cores", lambda cores=cores: cores)
        runs = run(out=tmp_path / "run", steps=20 * cores)
        assert (runs.status["step"], runs.config.one_core) == (20 * cores, True)
        assert run(out=tmp_path / f"new{cores}", steps=20).config.one_core == (cores == 1)


def test_cadences_that_are_not_asked_for_stay_as_they_were(run, tmp_path):
    run(out=tmp_path / "run", steps=20, metrics_every=None, evaluate_every=None)
    runs = run(out=tmp_path / "run", steps=24, metrics_every=None, evaluate_every=None)
    assert (runs.config.steps, runs.config.metrics_every, runs.config.evaluate_every) == (24, 1, 1)


class Crash(Exception):
    pass


@contextmanager
def crashing_before_write(number):
    """Raise instead of the given write to the folder, counted from 0 over all kinds of files."""
    calls = itertools.count()

    def counted(write):
        def call(*arguments, **options):
            if next(calls) == number:
                raise Crash
            return write(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patches:
        writers = [(sys.modules[f"dr3.training.{name}"], "write_json") for name in ("train", "session")]
        for home, name in (*writers, (RunFolder, "append"), (Checkpoints, "save")):
            patches.setattr(home, name, counted(getattr(home, name)))
        yield


def test_a_crash_before_any_write_loses_nothing(run, tmp_path, save_every_chunk):
    """Every file that a run writes, in turn, is the first that it does not get to write."""
    run = partial(run, steps=20, metrics_every=10, evaluate_every=10, chunk=10)
    expected = digest(run(out=tmp_path / "whole"))
    for number in itertools.count():
        out = tmp_path / str(number)
        try:
            with crashing_before_write(number):
                run(out=out)
        except Crash:
            resumed = run(out=out)
            assert digest(resumed) == expected, f"after a crash before write {number}"
            assert resumed.status["finished"]
        else:
            break
    # configuration, environment and status at first; metrics, evaluation and critics 3 times; state and status twice
    assert number == 3 + 3 * 3 + 2 * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_chunk_with_everything_saved(run, tmp_path, whole, number, monkeypatch, capsys):
    append = RunFolder.append

    def and_signal(self, file, rows):
        append(self, file, rows)
        if file == self.metrics and len(file.read_text().splitlines()) == 3:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with monkeypatch.context() as patches:
        patches.setattr(RunFolder, "append", and_signal)
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit) as stopped:
            run(out=tmp_path / "run", chunk=5, progress=True)
    if number == signal.SIGTERM:
        assert getattr(stopped.value, "code", None) == 143
    assert "Stopped at step 20, everything saved; the same command goes on" in capsys.readouterr().err
    assert signal.getsignal(number) is before
    assert Runs(tmp_path / "run").status == {"step": 20, "finished": False, "diverged": {}}
    assert digest(run(out=tmp_path / "run", progress=True)) == whole
    assert "Resuming from step 20" in capsys.readouterr().err


def test_a_torn_last_line_is_dropped(run, tmp_path, whole, save_every_chunk):
    """Killed in the middle of a write, with the state of step 30 as the newest one."""
    runs = run(out=tmp_path / "run", steps=30, evaluate_every=20)
    run_folder = runs.folder
    for file in (run_folder.metrics, run_folder.evaluations):
        lines = file.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["step"] % (10 if file == run_folder.metrics else 20) == 0]
        file.write_bytes(b"".join(kept) + lines[-1][: len(lines[-1]) // 2])
    assert len(Runs(tmp_path / "run").steps) == 4
    assert digest(run(out=tmp_path / "run")) == whole


def truncate(state):
    state.write_bytes(state.read_bytes()[:-1])


def halve(state):
    state.write_bytes(state.read_bytes()[: state.stat().st_size // 2])


def flip_a_bit(state):
    content = bytearray(state.read_bytes())
    with zipfile.ZipFile(state) as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
    content[largest.header_offset + largest.file_size] ^= 1  # inside an array, which only its checksum can tell
    state.write_bytes(content)


def empty(state):
    state.write_bytes(b"")


def lose_an_array(state):
    """As damage of what tells where arrays begin and end can do: all that is left matches its checksums."""
    with np.load(state) as stored:
        kept = {name: stored[name] for name in stored.files[1:]}
    np.savez(state, allow_pickle=False, **kept)


@pytest.mark.parametrize("damage", [truncate, halve, flip_a_bit, empty, lose_an_array])
def test_a_damaged_state_is_noticed_and_the_one_before_used(run, tmp_path, whole, save_every_chunk, damage, capsys):
    runs = run(out=tmp_path / "run", chunk=10)
    state = runs.folder.state
    assert state.steps() == [50, 60]
    damage(state.path(60))
    (state.folder / ".000000060.npz.1.unfinished").write_bytes(b"PK")  # what a kill in the middle of a write leaves
    again = run(out=tmp_path / "run", progress=True)
    said = capsys.readouterr().err
    assert "The state of step 60" in said
    assert "Resuming from step 50" in said
    assert digest(again) == whole
    assert sorted(path.name for path in state.folder.iterdir()) == ["000000050.npz", "000000060.npz"]


@pytest.mark.parametrize("damage", [halve, flip_a_bit])
def test_a_damaged_critic_is_noticed_and_made_again(run, tmp_path, whole, save_every_chunk, damage, capsys):
    runs = run(out=tmp_path / "run", chunk=10)
    damage(runs.folder.checkpoints.path(60))
    again = run(out=tmp_path / "run", progress=True)
    assert "000000060.npz is damaged; the state of step 60, which is later, is not used" in capsys.readouterr().err
    assert digest(again) == whole


@pytest.mark.parametrize("name", ["metrics", "evaluations"])
def test_a_torn_line_that_a_state_covers_is_written_again(run, tmp_path, whole, save_every_chunk, name, capsys):
    runs = run(out=tmp_path / "run", chunk=10)
    file = getattr(runs.folder, name)
    file.write_bytes(file.read_bytes()[:-5])
    again = run(out=tmp_path / "run", progress=True)
    said = capsys.readouterr().err
    assert f"{file} does not hold what was there at step 60" in said
    assert "Resuming from step 50" in said
    assert digest(again) == whole


def flip_in_line(file, line):
    """A bit of a number, which JSON does not notice."""
    lines = file.read_bytes().splitlines(keepends=True)
    place = max(at for at, byte in enumerate(lines[line]) if chr(byte).isdigit())
    lines[line] = lines[line][:place] + bytes([lines[line][place] ^ 1]) + lines[line][place + 1 :]
    file.write_bytes(b"".join(lines))


@pytest.mark.parametrize("name", ["metrics", "evaluations"])
def test_a_flipped_bit_in_a_line_is_noticed_and_done_again(run, tmp_path, whole, save_every_chunk, name, capsys):
    runs = run(out=tmp_path / "run", chunk=10)
    file = getattr(runs.folder, name)
    flip_in_line(file, -1)
    with pytest.raises(UserError, match="is damaged: it does not hold what was there at step 60"):
        digest(Runs(tmp_path / "run"))
    assert digest(run(out=tmp_path / "run", progress=True)) == whole
    assert "Resuming from step 50" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["metrics", "evaluations"])
@pytest.mark.parametrize("how", ["flip", "remove", "break"])
def test_what_is_damaged_before_every_state_is_said(run, tmp_path, whole, save_every_chunk, name, how):
    runs = run(out=tmp_path / "run", chunk=10)
    file = getattr(runs.folder, name)
    before = file.read_bytes()
    {"flip": lambda: flip_in_line(file, 1), "remove": file.unlink, "break": lambda: file.write_bytes(b"{" + before)}[
        how
    ]()
    for reading in (lambda: digest(Runs(tmp_path / "run")), lambda: run(out=tmp_path / "run")):
        with pytest.raises(UserError, match=f"{name}.jsonl is (damaged|missing).* put back a copy, or remove .*state"):
            reading()
    assert Runs(tmp_path / "run").checkpoints == runs.checkpoints  # nothing was thrown away
    for step in runs.folder.state.steps():  # what the sentence says to do
        runs.folder.state.path(step).unlink()
    assert digest(run(out=tmp_path / "run")) == whole


def test_a_run_of_an_older_version_has_no_checksums_and_goes_on(run, tmp_path, whole, save_every_chunk):
    runs = run(out=tmp_path / "run", chunk=10, steps=40)
    for step in runs.folder.state.steps():
        with zipfile.ZipFile(runs.folder.state.path(step), "a") as archive:
            archive.comment = b""
    lines = runs.folder.metrics.read_text()
    for odd in ('"a"', "3", "{}", '{"step": "x", "member": 0}'):
        runs.folder.metrics.write_text(lines + odd + "\n")
        with pytest.raises(UserError, match="is damaged: row"):
            run(out=tmp_path / "run")
    runs.folder.metrics.write_text(lines)
    (runs.path / ".metrics.jsonl.1.unfinished").mkdir()  # nobody's unfinished file
    assert digest(run(out=tmp_path / "run")) == whole


def test_a_damaged_checksum_is_a_damaged_state(run, tmp_path, whole, save_every_chunk, capsys):
    runs = run(out=tmp_path / "run", chunk=10)
    content = bytearray(runs.folder.state.path(60).read_bytes())
    content[-3] ^= 1
    runs.folder.state.path(60).write_bytes(content)
    assert digest(run(out=tmp_path / "run", progress=True)) == whole
    assert "The state of step 60" in capsys.readouterr().err


def test_stray_files_are_left_alone(run, tmp_path, whole, save_every_chunk):
    runs = run(out=tmp_path / "run", chunk=10, steps=40)
    strays = ["notes.txt", "best.npz", "²0000000.npz", "10.npz", ".DS_Store", "000000010.npz.bak", "0" * 40 + ".npz"]
    strays.append("0000000500.npz")  # of a step, but not as one is written
    for folder in (runs.folder.state.folder, runs.folder.checkpoints.folder):
        (folder / "000000015.npz").mkdir()
        for name in strays:
            (folder / name).write_text("mine")
    again = run(out=tmp_path / "run")
    assert digest(again) == whole
    assert again.checkpoints == [0, 20, 40, 60]
    for folder in (runs.folder.state.folder, runs.folder.checkpoints.folder):
        assert all((folder / name).read_text() == "mine" for name in strays)


@pytest.mark.parametrize("step", [50, 999])
def test_a_state_under_another_name_is_not_believed(run, tmp_path, whole, save_every_chunk, step):
    """A copy that somebody has put back under another step."""
    state = run(out=tmp_path / "run", chunk=10, steps=40).folder.state
    state.path(step).write_bytes(state.path(40).read_bytes())
    assert digest(run(out=tmp_path / "run")) == whole


def test_with_every_state_damaged_it_starts_again(run, tmp_path, whole, save_every_chunk):
    runs = run(out=tmp_path / "run", chunk=10)
    for step in runs.folder.state.steps():
        empty(runs.folder.state.path(step))
    assert digest(run(out=tmp_path / "run")) == whole


def test_states_that_are_whole_but_of_other_shapes_are_not_thrown_away(run, tmp_path, save_every_chunk):
    runs = run(out=tmp_path / "run", chunk=10)
    for step in runs.folder.state.steps():
        lose_an_array(runs.folder.state.path(step))
    with pytest.raises(UserError, match=r"No state in .*state fits this run; remove that folder to start again"):
        run(out=tmp_path / "run")
    assert Runs(tmp_path / "run").checkpoints == runs.checkpoints


def test_no_single_bit_makes_a_checkpoint_raise_or_come_back_as_another(tmp_path):
    tree = {"a": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.int32(7)}
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, tree)
    good = checkpoints.path(1).read_bytes()
    verdicts = Counter()
    for place, bit in itertools.product(range(len(good)), (0, 5)):  # all eight take four times as long
        content = bytearray(good)
        content[place] ^= 1 << bit
        checkpoints.path(1).write_bytes(content)
        whole = checkpoints.intact(1)
        try:
            restored = checkpoints.restore(1, tree)
        except ValueError:
            restored = None
        verdicts[whole, restored is not None] += 1
        if whole and restored is not None:
            assert all(np.array_equal(restored[name], tree[name]) for name in tree), (place, bit)
    assert verdicts[False, False] > 250
    assert verdicts[True, False] > 0


def test_a_finished_run_is_left_alone(run, tmp_path, whole):
    runs = run(out=tmp_path / "run")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run" / "checkpoints").rglob("*")}
    runs.folder.status.unlink()  # killed between the last state and its status
    again = run(out=tmp_path / "run")
    assert digest(again) == whole
    assert again.status["finished"]
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "run" / "checkpoints").rglob("*")}


# --- Another run ---


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": 2}, "holds another run: it has 1 member and the one asked for 2 members; choose another folder"),
        ({"regularizer": DR3(0.1)}, r"its members\[0\].regularizer"),
        ({"metrics_every": 5}, "its metrics_every is 10 and the one asked for is 5"),
        ({"env": None}, "its evaluation"),
        ({"steps": 59}, "is a run of 60 steps; it can be lengthened, not cut to 59"),
    ],
)
def test_a_folder_that_holds_another_run_is_refused(run, tmp_path, change, says):
    runs = run(out=tmp_path / "run")
    before = digest(runs)
    with pytest.raises(UserError, match=says):
        run(out=tmp_path / "run", **change)
    assert digest(Runs(tmp_path / "run")) == before


def test_other_data_are_another_run(run, tmp_path, logged, method):
    from dr3.training import train

    run(out=tmp_path / "run", steps=20)
    with pytest.raises(UserError, match=r"holds another run: its data\."):
        train(logged.subset(0.5, seed=0), method, steps=20, out=tmp_path / "run", progress=False)


def test_the_same_data_from_elsewhere_are_the_same_run(run, tmp_path, logged, method):
    import dataclasses

    from dr3.training import train

    for steps, source in ((20, "logged.npz"), (40, "../moved/logged.npz")):
        data = dataclasses.replace(logged, source=source)
        runs = train(data, method, steps=steps, env=None, out=tmp_path / "run", progress=False)
        assert runs.status["step"] == steps
        assert runs.config.data.source == source


def test_two_processes_cannot_write_one_folder(run, tmp_path):
    with RunFolder(tmp_path / "run").locked(), pytest.raises(UserError, match="is in use by another process"):
        run(out=tmp_path / "run")


def test_what_cannot_be_trained_leaves_the_folder_free(run, tmp_path, logged, method):
    import dataclasses

    from dr3.training import train

    with pytest.raises(UserError, match="target_period"):
        train(logged, dataclasses.replace(method, target_period=0), steps=20, out=tmp_path / "run", progress=False)
    assert run(out=tmp_path / "run", steps=20).status["finished"]


def test_a_file_is_no_run_folder(run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file cannot be a run folder: File exists\."):
        run(out=tmp_path / "file")
