"""Against the real libraries: what they wrote is read back."""

from __future__ import annotations

import json
import shutil
import struct

import pytest

from dr3.cli import invoke
from dr3.integrations.trackers import settings, to_tensorboard, to_wandb, values_by_step
from dr3.runs import Runs


def test_what_is_handed_over(small_run):
    runs = Runs(small_run)
    rows = values_by_step(runs, 3)
    assert list(rows) == [0, 10, 20, 30, 40]
    assert rows[40]["evaluation/return"] == runs.evaluations["evaluation/return"][3, -1]
    assert "evaluation/return" not in rows[10]
    told = settings(runs, 3)
    assert (told["seed"], told["method.name"], told["regularizer.coefficient"]) == (1, "dqn", 0.1)
    assert told["method.hidden"] == "[8, 6]"
    assert settings(runs, 0)["regularizer.name"] == "none"


def test_values_that_are_not_finite_are_left_out(copied_run):
    shutil.rmtree(copied_run / "state")  # it would notice
    rows = [json.loads(line) for line in (copied_run / "metrics.jsonl").read_text().splitlines()]
    rows[-1]["q/data_mean"] = None  # of the last member
    (copied_run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "q/data_mean" not in values_by_step(Runs(copied_run), 3)[40]


def test_tensorboard(small_run, tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event  # ty: ignore[import-not-found]

    runs = Runs(small_run)
    to_tensorboard(runs, tmp_path)
    folders = to_tensorboard(runs, tmp_path)  # again: nothing twice
    assert len(folders) == 4
    (file,) = folders[2].iterdir()
    content, events = file.read_bytes(), []
    while content:  # length, its checksum, the event, its checksum
        (length,) = struct.unpack("<Q", content[:8])
        events.append(Event.FromString(content[12 : 12 + length]))
        content = content[16 + length :]
    scalars = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value if v.HasField("simple_value")]
    expected = [(step, name, value) for step, row in values_by_step(runs, 2).items() for name, value in row.items()]
    assert [(step, name) for step, name, _ in scalars] == [(step, name) for step, name, _ in expected]
    assert [value for *_, value in scalars] == pytest.approx([value for *_, value in expected], rel=1e-6)
    assert any(b"regularizer.coefficient" in v.SerializeToString() for e in events for v in e.summary.value)


def logged_records(content):
    """LevelDB's log after a header of 7 bytes: blocks of 32 KiB, records in pieces (1 whole, 2 first, 3, 4 last)."""
    place, parts = 7, b""
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", content[place : place + 7])
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_wandb_offline(small_run, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record  # ty: ignore[import-not-found]

    monkeypatch.setenv("WANDB_MODE", "online")  # not even then
    runs = Runs(small_run)
    to_wandb(runs, tmp_path)
    folders = to_wandb(runs, tmp_path)
    assert sorted((tmp_path / "wandb").glob("offline-run-*")) == sorted(folders)
    (file,) = folders[3].glob("*.wandb")
    records = [Record.FromString(data) for data in logged_records(file.read_bytes())]
    config = {item.key: json.loads(item.value_json) for r in records for item in r.run.config.update}
    assert {**settings(runs, 3)}.items() <= config.items()
    history = [{"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in r.history.item} for r in records]
    history = [row for row in history if row]
    assert [row["_step"] for row in history] == [0, 10, 20, 30, 40]
    assert history[-1]["features/srank"] == values_by_step(runs, 3)[40]["features/srank"]


def test_the_command(copied_run, capsys):
    pytest.importorskip("tensorboardX")
    assert invoke(["run", "export", str(copied_run), "--to", "tensorboard"]) == 0
    assert str(copied_run / "tensorboard") in capsys.readouterr().out
    (copied_run / "file").write_text("")
    assert invoke(["run", "export", str(copied_run), "--to", "tensorboard", "--out", str(copied_run / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err
