from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.collect.host_policy import HostPolicy, read_policy, write_policy
from dr3.collect.maze import collect_maze, kind_of
from dr3.collect.waypoints import PLACES, Guide, _pairs, _waypoint, to_the_goal
from dr3.data import read
from dr3.envs import MAZES, TASKS, make_world
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
    monkeypatch.setattr("dr3.collect.loop.SAVE_INTERVAL", -1.0)
    episode, calls = Guide.__call__, []

    def stop(guide, number):
        calls.append(number)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return episode(guide, number)

    monkeypatch.setattr(Guide, "__call__", stop)
    out = tmp_path / "play.npz"
    with pytest.raises(KeyboardInterrupt):
        collect_maze(MAZE, steps=1200, kind="play", out=out, progress=False)
    with pytest.raises(UserError, match="unfinished collection with another seed"):
        collect_maze(MAZE, steps=1200, kind="play", out=out, seed=1, progress=False)
    calls[:] = [None] * 10
    again = collect_maze(MAZE, steps=1200, kind="play", out=out, progress=False)
    assert calls[10] == 3  # the first three were not made again
    assert again.fingerprint() == played.fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["play.npz"]


def test_a_second_start_is_refused_while_the_first_collects(tmp_path, played, monkeypatch):
    episode, refusals = Guide.__call__, []

    def start_another(guide, number):
        if not refusals:
            with pytest.raises(UserError, match=r"play\.npz\.unfinished is in use by another process") as refused:
                collect_maze(MAZE, steps=1200, kind="play", out=tmp_path / "play.npz", progress=False)
            refusals.append(refused)
        return episode(guide, number)

    monkeypatch.setattr(Guide, "__call__", start_another)
    data = collect_maze(MAZE, steps=1200, kind="play", out=tmp_path / "play.npz", progress=False)
    assert refusals
    assert data.fingerprint() == played.fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["play.npz"]


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


# --- AntMaze ---


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    """A policy that pushes every leg a little, whatever it sees."""
    path = tmp_path_factory.mktemp("walker") / "walker.npz"
    policy = HostPolicy(None, 8, -1.0, 1.0)
    policy.layers = [(np.zeros((28, 16), np.float32), np.linspace(-0.2, 0.2, 16, dtype=np.float32))]
    write_policy(path, policy)
    return path


@pytest.fixture
def brief(monkeypatch):
    """AntMaze with episodes of 30 steps, in this process."""
    shorter = {name: dataclasses.replace(task, limit=30) for name, task in TASKS.items()}
    monkeypatch.setattr("dr3.envs.worlds.find_task", lambda name: shorter["antmaze-umaze"])


def test_an_ant_is_driven_by_a_policy_from_a_file(tmp_path, walker, brief):
    ask: Any = {"steps": 75, "walker": walker, "workers": 1, "progress": False}
    data = collect_maze("antmaze/umaze", out=tmp_path / "ant.npz", noise=0.0, **ask)
    assert (data.world, data.name) == ("antmaze/umaze", "antmaze-umaze-diverse-0")
    assert data.observations.shape == (75, 29)
    np.testing.assert_array_equal(np.flatnonzero(data.timeouts), [29, 59, 74])
    torques = {tuple(row) for row in np.abs(data.actions.reshape(-1, 4, 2)).sum(axis=2).round(4)}
    assert 1 <= len(torques) <= 4  # legs by other names, as the way turns


def test_an_unfinished_collection_keeps_its_walker(tmp_path, walker, brief, monkeypatch):
    def stop(guide, number):
        raise KeyboardInterrupt

    ask: Any = {"steps": 75, "out": tmp_path / "ant.npz", "workers": 1, "progress": False}
    monkeypatch.setattr(Guide, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        collect_maze("antmaze/umaze", walker=walker, **ask)
    policy = read_policy(walker)
    policy.layers = [(weight, bias + 0.1) for weight, bias in policy.layers]
    write_policy(tmp_path / "other.npz", policy)
    with pytest.raises(UserError, match="unfinished collection with another walker"):
        collect_maze("antmaze/umaze", walker=tmp_path / "other.npz", **ask)


@pytest.mark.slow
def test_processes_change_nothing(tmp_path, walker):
    ask: Any = {"steps": 1500, "walker": walker, "progress": False}
    one = collect_maze("antmaze/umaze", out=tmp_path / "one.npz", workers=1, **ask)
    two = collect_maze("antmaze/umaze", out=tmp_path / "two.npz", workers=2, **ask)
    assert one.fingerprint() == two.fingerprint()


def test_a_walker_must_fit(tmp_path, walker):
    with pytest.raises(UserError, match="drives an ant"):
        collect_maze(MAZE, steps=10, out=tmp_path / "x.npz", walker=walker)
    policy = read_policy(walker)
    policy.layers = [(np.zeros((5, 16), np.float32), policy.layers[0][1])]
    write_policy(tmp_path / "five.npz", policy)
    with pytest.raises(UserError, match=r"maps 5 numbers to 8, a walker 28 to 8"):
        collect_maze("antmaze/umaze", steps=10, out=tmp_path / "x.npz", walker=tmp_path / "five.npz")


def test_the_kind_follows_from_the_name():
    assert [kind_of(name) for name in ("antmaze/medium-play", "antmaze/umaze")] == ["play", "diverse"]


def test_at_the_goals_cell_the_last_waypoint_is_the_goal_itself():
    maze = MAZES["umaze"]
    world = SimpleNamespace(maze=maze, scale=4.0, goal=np.array([0.7, 8.9]), place=lambda cell: np.array(cell) * 4.0)
    distances = maze.distances(maze.goal)
    np.testing.assert_array_equal(_waypoint(world, np.array([0.5, 8.2]), maze.goal, distances), world.goal)
    np.testing.assert_array_equal(_waypoint(world, np.array([4.2, 8.2]), maze.goal, distances), [12.0, 4.0])


def test_the_walker_that_comes_with_it_finds_the_goal():
    """The whole way of an evaluation of the U, without noise."""
    world = make_world("antmaze/umaze")
    seen, _ = world.reset(seed=1)
    act = to_the_goal(world.unwrapped)
    for _ in range(400):
        seen, reward, ended, _, info = world.step(act(seen))
        if ended:
            break
    assert ended
    assert info["success"]
    assert reward == 1.0
    world.close()


def test_a_point_is_led_to_the_goal():
    world = make_world("pointmaze/umaze")
    seen, _ = world.reset(seed=0)
    act, ended = to_the_goal(world.unwrapped), False
    while not ended:
        seen, _, ended, cut, _ = world.step(act(seen))
        assert not cut
    world.close()
