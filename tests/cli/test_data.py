from __future__ import annotations

import json

import pytest

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


@pytest.mark.parametrize(
    ("words", "collector", "out"),
    [
        ("dqn --env minatar/breakout --steps 1e6", "online_dqn.collect_dqn", "minatar-breakout-dqn-0.npz"),
        ("dqn --env minatar/breakout --seed 3", "online_dqn.collect_dqn", "minatar-breakout-dqn-3.npz"),
        ("dqn --env atari/Pong --seed 2", "emulated_dqn.collect_emulated_dqn", "Pong/2/replay_logs"),
        ("sac --env Hopper-v5 --seed 1", "online_sac.collect_sac", "hopper-v5-sac-1.npz"),
        ("maze --env pointmaze/medium --kind play", "maze.collect_maze", "pointmaze-medium-play-0.npz"),
        ("drawers --task drawers/closed", "drawers.collect_drawers", "drawers-closed-0"),
        ("dqn --env minatar/breakout --out mine.npz", "online_dqn.collect_dqn", "mine.npz"),
        ("dqn --env minatar/breakout --out data/atari/x.npz", "online_dqn.collect_dqn", "data/atari/x.npz"),
        ("dqn --env=atari/Pong --out minatar/x.npz", "emulated_dqn.collect_emulated_dqn", "minatar/x.npz"),
    ],
)
def test_what_is_collected_is_named_after_its_world(words, collector, out, logged, capsys, monkeypatch):
    asked = {}

    def collect(*_, **options):
        asked.update(options)
        return ["a skill: 1 of 1 episodes (100%)"] if "drawers" in words else logged

    if "drawers" in words:
        pytest.importorskip("mujoco")
    pytest.importorskip(f"dr3.collect.{collector.partition('.')[0]}")
    monkeypatch.setattr(f"dr3.collect.{collector}", collect)
    assert invoke(["data", "collect", *words.split()]) == 0
    assert str(asked["out"]) == out
    assert f"are in {out}" in capsys.readouterr().out


def test_help_says_where_a_collection_goes(capsys):
    with pytest.raises(SystemExit):
        invoke(["data", "collect", "dqn", "--help"])
    assert "minatar-breakout-dqn-0.npz" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("verb", ["describe", "schema", "convert", "collect maze", "collect drawers"])
def test_the_help_of_each_verb_has_an_example_of_its_own(capsys, verb):
    with pytest.raises(SystemExit):
        invoke(["data", *verb.split(), "--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith(f"dr3 data {verb} ") for line in lines)
