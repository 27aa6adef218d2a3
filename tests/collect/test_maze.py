from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.collect.maze import PLACES, _pairs, collect_maze
from dr3.data import read
from dr3.envs import MAZES
from dr3.errors import UserError

pytest.importorskip("gymnasium_robotics")
MAZE = "pointmaze/umaze"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return collect_maze(MAZE, steps=1200, kind="play", out=tmp_path_factory.mktemp("maze") / "play.npz", progress=False)


def cells(places):
    """Where the rows are on the map of the U."""
    return [tuple(cell) for cell in np.rint(places[:, ::-1]).astype(int) + MAZES["umaze"].start]


def test_play_goes_between_the_places_and_never_straight_to_the_goal(played):
    starts = np.append(True, played.episodes[1:] != played.episodes[:-1])
    ends = played.terminals | played.timeouts
    maze = MAZES["umaze"]
    pairs = set(zip(cells(played.observations[starts, :2]), cells(played.next_observations[ends, :2]), strict=True))
    assert {begin for begin, _ in pairs} <= set(PLACES["umaze"]) - {maze.goal}
    assert (maze.start, maze.goal) not in pairs
    assert len(pairs) >= 4
    assert set(cells(played.observations[:, :2])) <= set(maze.free)
    assert played.world == MAZE


@pytest.mark.parametrize("kind", ["play", "diverse"])
@pytest.mark.parametrize("maze", MAZES.values(), ids=MAZES)
def test_no_shortest_way_goes_from_the_start_to_the_goal(maze, kind):
    pairs = _pairs(maze, kind)
    assert (maze.start, maze.goal) not in pairs
    assert any(there == maze.goal for _, there in pairs)
    assert any(here == maze.start for here, _ in pairs)
    for here, there in pairs:
        distances, way = maze.distances(there), [here]
        while way[-1] != there:
            way.append(min(maze.neighbours(way[-1]), key=distances.__getitem__))
        assert maze.goal not in way or maze.start not in way[: way.index(maze.goal)]


def test_the_reward_is_the_evaluations(played):
    near = np.linalg.norm(played.next_observations[:, :2] - [0, 2], axis=1) <= 0.5
    np.testing.assert_array_equal(played.rewards, near)
    np.testing.assert_array_equal(played.terminals, near)
    assert played.terminals.any()
    assert not (played.terminals & played.timeouts).any()


def test_diverse_starts_anywhere(tmp_path, played):
    data = collect_maze(MAZE, steps=1200, kind="diverse", out=tmp_path / "diverse.hdf5", progress=False)
    assert read(tmp_path / "diverse.hdf5").fingerprint() == data.fingerprint()
    starts = np.append(True, data.episodes[1:] != data.episodes[:-1])
    assert len(set(cells(data.observations[starts, :2]))) > len(PLACES["umaze"])
    assert data.fingerprint() != played.fingerprint()


def test_stopped_in_the_middle_it_ends_with_the_same_file(tmp_path, played, monkeypatch):
    maze = import_module("dr3.collect.maze")
    monkeypatch.setattr("dr3.collect.loop.SAVE_INTERVAL", -1.0)
    episode, calls = maze._episode, []

    def stop(*arguments):
        calls.append(arguments[2])
        if len(calls) == 4:
            raise KeyboardInterrupt
        return episode(*arguments)

    monkeypatch.setattr(maze, "_episode", stop)
    out = tmp_path / "play.npz"
    with pytest.raises(KeyboardInterrupt):
        collect_maze(MAZE, steps=1200, kind="play", out=out, progress=False)
    with pytest.raises(UserError, match="unfinished collection with another seed"):
        collect_maze(MAZE, steps=1200, kind="play", out=out, seed=1, progress=False)
    calls[:] = [None] * 10
    again = collect_maze(MAZE, steps=1200, kind="play", out=out, progress=False)
    assert calls[10] == (0, 3)  # the first three were not made again
    assert again.fingerprint() == played.fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["play.npz"]


def test_a_second_start_is_refused_while_the_first_collects(tmp_path, played, monkeypatch):
    maze = import_module("dr3.collect.maze")
    episode, refusals = maze._episode, []

    def start_another(*arguments):
        if not refusals:
            with pytest.raises(UserError, match=r"play\.npz\.unfinished is in use by another process") as refused:
                collect_maze(MAZE, steps=1200, kind="play", out=tmp_path / "play.npz", progress=False)
            refusals.append(refused)
        return episode(*arguments)

    monkeypatch.setattr(maze, "_episode", start_another)
    data = collect_maze(MAZE, steps=1200, kind="play", out=tmp_path / "play.npz", progress=False)
    assert refusals
    assert data.fingerprint() == played.fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["play.npz"]


def test_another_body_needs_a_walker(tmp_path):
    with pytest.raises(UserError, match="trained walker"):
        collect_maze("antmaze/umaze", steps=10, out=tmp_path / "ant.npz")


def test_missing_folders_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["data", "collect", "maze", "--env", MAZE, "--steps", "2"]
    assert invoke([*words, "--out", "new/folder/maze.npz"]) == 0
    assert len(read("new/folder/maze.npz")) == 2
    assert invoke(words) == 0
    assert "are in pointmaze-umaze-diverse-0.npz" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"new", "pointmaze-umaze-diverse-0.npz"}


def test_a_file_cannot_be_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/x cannot be a folder: .*/file is a file"):
        collect_maze(MAZE, steps=50, out=tmp_path / "file" / "x" / "maze.npz")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--env": "Hopper-v5"}, "no maze 'Hopper-v5'"),
        ({"--out": "maze.csv"}, "ending"),
        ({"--steps": "1"}, "at least 2"),
        ({"--noise": "nan"}, "noise must be at least 0, not nan"),
        ({"--noise": "-1"}, "noise must be at least 0, not -1.0"),
        ({"--seed": "-1"}, "A seed is a whole number"),
    ],
)
def test_mistakes_are_said(tmp_path, monkeypatch, capsys, changes, words):
    monkeypatch.chdir(tmp_path)
    options = {"--env": MAZE, "--out": "maze.npz", "--steps": "50"} | changes
    assert invoke(["data", "collect", "maze", *(word for pair in options.items() for word in pair)]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
