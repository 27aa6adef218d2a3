from __future__ import annotations

import sys

import numpy as np
import pytest

from dr3.envs import ATARI, atari
from dr3.errors import UserError

ale_py = pytest.importorskip("ale_py")
module = sys.modules["dr3.envs.atari"]


def area_weights(before: int, after: int) -> np.ndarray:
    """How much of each pixel falls into each larger one: (after, before), rows summing to 1."""
    edges = np.arange(after + 1) * before / after
    left, right = np.arange(before), np.arange(1, before + 1)
    overlap = np.minimum(edges[1:, None], right) - np.maximum(edges[:-1, None], left)
    return np.clip(overlap, 0, None) * after / before


def one_by_one(rom: str, seed: int, actions: np.ndarray) -> tuple[list[np.ndarray], list[float], bool]:
    """Frames, rewards and whether it ended, from the bare emulator: as the paper's table of hyperparameters says."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.25)
    ale.loadROM(str(ale_py.roms.get_rom_path(rom)))
    ale.reset_game()
    height, width = ale.getScreenDims()
    down, across = area_weights(height, 84), area_weights(width, 84)
    seen, rewards = [down @ ale.getScreenGrayscale() @ across.T], []
    for action in actions:
        reward, screens = 0.0, []
        for _ in range(4):
            reward += ale.act(ale.getMinimalActionSet()[action])
            screens.append(ale.getScreenGrayscale().astype(np.float64))
        seen.append(down @ np.maximum(screens[2], screens[3]) @ across.T)
        rewards.append(reward)
        if ale.game_over():
            return seen, rewards, True
    return seen, rewards, False


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Pong", "Breakout"])
def test_frames_are_those_of_the_bare_emulator(name) -> None:
    """To within rounding: the maximum of the last two of four frames, each pixel the mean of the area it covers."""
    actions = np.random.default_rng(0).integers(4, size=120)
    seen, rewards, ended = one_by_one(name.lower(), 7, actions)
    games = atari(f"atari/{name}").open(2)
    frames = games.reset(np.array([7, 8]))
    assert frames.shape == (2, 84, 84)
    np.testing.assert_allclose(frames[0], seen[0], atol=1.01)
    total = 0.0
    for number, reward in enumerate(rewards):
        moves = games.step(np.array([actions[number]] * 2))
        assert moves.rewards[0] == reward
        total += abs(reward)
        if number + 1 < len(rewards):
            np.testing.assert_allclose(moves.frames[0], seen[number + 1], atol=1.01)
    assert moves.terminals[0] == ended
    assert total > 0
    games.close()


@pytest.mark.slow
def test_the_papers_games_load() -> None:
    assert len(ATARI) == 17
    for name, actions in ATARI.items():
        world = atari(name)
        games = world.open(1)
        assert games._games.single_action_space.n == actions == world.actions
        assert games.reset(np.array([0])).max() > 0 or name == "atari/Zaxxon"
        moves = games.step(np.array([actions - 1]))
        assert (moves.frames.shape, moves.terminals.tolist()) == ((1, 84, 84), [False])
        games.close()


def test_the_same_seed_plays_the_same_game_and_another_another() -> None:
    games = atari("atari/Pong").open(3)

    def play(seeds: list[int]) -> np.ndarray:
        games.reset(np.array(seeds))
        return np.stack([games.step(np.array([step % 6] * 3)).frames for step in range(40)])

    one, two = play([1, 2, 1]), play([3, 2, 1])
    np.testing.assert_array_equal(one[:, 0], one[:, 2])
    np.testing.assert_array_equal(one[:, 1:], two[:, 1:])
    assert (one[:, 0] != two[:, 0]).any()


def test_the_clock_is_a_time_out(monkeypatch) -> None:
    assert module.FRAMES_PER_EPISODE == 27_000 * 4
    monkeypatch.setattr(module, "FRAMES_PER_EPISODE", 40)
    games = atari("atari/Pong").open(1)
    first = games.reset(np.array([5]))
    ends = [games.step(np.array([0])) for _ in range(10)]
    assert [bool(moves.timeouts[0]) for moves in ends] == [False] * 9 + [True]
    assert not any(moves.terminals[0] for moves in ends)
    np.testing.assert_array_equal(games.reset(np.array([5])), first)
    assert not games.step(np.array([0])).timeouts[0]


def test_other_games_are_known_too_and_wrong_names_are_not(monkeypatch) -> None:
    assert atari("atari/Alien").actions == 18
    for name in ("atari/Ping", "atari/pong", "atari/", "atari/Ms_Pacman"):
        with pytest.raises(UserError, match=f"There is no game '{name}'; (the nearest are|one is) atari/"):
            atari(name)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(
        UserError, match=r"atari/Pong needs the Arcade Learning Environment: pip install 'dr3\[atari\]'"
    ):
        atari("atari/Pong")
