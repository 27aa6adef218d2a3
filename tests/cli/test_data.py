from __future__ import annotations

import json

from dr3.cli import invoke
from dr3.data import write_npz


def test_describing_a_world_and_a_file(tmp_path, logged, capsys):
    assert invoke(["data", "describe", "grid16smoothobs:size=100:seed=1"]) == 0
    out = capsys.readouterr().out
    assert "100 in 2 episodes" in out
    assert "5 discrete actions" in out
    write_npz(tmp_path / "logged.npz", logged)
    assert invoke(["data", "describe", str(tmp_path / "logged.npz")]) == 0
    assert "3 terminals, 3 time-outs" in capsys.readouterr().out


def test_as_json(tmp_path, logged, capsys):
    write_npz(tmp_path / "logged.npz", logged)
    assert invoke(["data", "describe", str(tmp_path / "logged.npz"), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["rows"] == 48
    assert described["terminals"] == 3


def test_without_arguments_it_says_how(capsys):
    assert invoke(["data"]) == 0
    assert "dr3 data describe" in capsys.readouterr().out
    assert invoke(["run"]) == 0
    assert "dr3 run digest" in capsys.readouterr().out
