from __future__ import annotations

import random

import numpy as np
import pytest

from dr3.envs.gridworld import GRIDWORLDS, gridworld, is_gridworld, spelled_gridworld
from dr3.envs.gridworld_layout import GOAL, LAVA, START, WALL, find, random_layout, reachable, state_of, successors
from dr3.errors import UserError

MAZE = """\
ROOO##OOO#O#O#OO
OOOOOOOO#OOOOOOO
O#OO#O#O#OOO#OOO
OO#OOOOOOOOO#OOO
OOO#O#OOOO#OOO##
OO#OOOOOOOO#O##O
OOOOOOOOO#OOOOOO
OOO#OO#OOOOOOOOO
O#OO#OO#SOOOOOO#
O#OOOOOO#OOO###O
#OOOO#O#OOOOOOOO
OOOOO##OO#O#O#OO
OOOOOOO#OOOOOO#O
OOOO#OOOO#OO#OOO
OOOOOOOO#OOOOOOO
OOOO#O#OO#OOOOOO"""
STAY, UP, DOWN, LEFT, RIGHT = range(5)


@pytest.mark.parametrize("name", GRIDWORLDS)
def test_the_maze_is_the_published_one(name):
    world = gridworld(name)
    assert world.layout == MAZE
    assert (world.start, world.goal, world.horizon) == (136, 0, 50)
    assert world.transitions.shape == (256, 5, 256)
    assert world.observations.shape == (256, 16)
    assert world.observations.dtype == np.float32


def test_every_free_cell_is_reachable_and_the_goal_is_sixteen_steps_away():
    tiles = random_layout()
    free = {state_of((x, y)) for y, x in np.argwhere(tiles != WALL)}
    assert len(free) == 205
    assert reachable(tiles) == free

    table, steps, frontier = successors(tiles), 0, {136}
    while 0 not in frontier:
        frontier |= {int(state) for state in table[list(frontier)].ravel()}
        steps += 1
    assert steps == 16


def test_moves_clip_at_borders_stop_at_walls_and_never_leave_a_wall():
    table = successors(random_layout())
    assert table[0].tolist() == [0, 0, 16, 0, 1]  # the upper left corner
    assert table[136].tolist() == [136, 120, 136, 136, 137]  # the start: walls below and to the left
    assert table[255].tolist() == [255, 239, 255, 254, 255]  # the lower right corner
    assert table[4].tolist() == [4] * 5  # a wall


def test_noise_replaces_one_action_in_twenty_by_a_uniform_one():
    P = gridworld("grid16smoothobs").transitions
    np.testing.assert_allclose(P.sum(axis=2), 1)
    # From the start, stay, down and left all stay put.
    np.testing.assert_allclose(P[136, RIGHT, [136, 120, 137]], [0.03, 0.01, 0.96])
    np.testing.assert_allclose(P[136, STAY, [136, 120, 137]], [0.98, 0.01, 0.01])


@pytest.mark.parametrize("name", ["grid16smoothsparse", "grid16randomsparse"])
def test_sparse_reward_is_one_at_the_goal_only(name):
    rewards = gridworld(name).rewards
    assert rewards[0] == 1
    assert rewards.sum() == 1


@pytest.mark.parametrize("name", ["grid16smoothobs", "grid16randomobs"])
def test_dense_reward_falls_with_the_distance_to_the_goal(name):
    rewards = gridworld(name).rewards
    assert rewards[0] == 1
    assert rewards[3 + 16 * 5] == 0.5  # 8 of the 16 steps away
    assert rewards[136] == 0
    assert np.count_nonzero(rewards > 0) == 136
    assert rewards.min() == 0


@pytest.mark.parametrize("name", ["grid16randomobs", "grid16randomsparse"])
def test_random_observations_are_the_published_stream(name):
    observations = gridworld(name).observations
    np.testing.assert_allclose(observations[0, :4], [0.0976, 0.4304, 0.2055, 0.0898], atol=5e-5)


@pytest.mark.parametrize("name", ["grid16smoothobs", "grid16smoothsparse"])
def test_smooth_observations_are_swept_in_place(name):
    world = gridworld(name)
    # Sweeping a copy (Jacobi) would give 0.1901, -0.2527, 0.0956, 0.1664.
    np.testing.assert_allclose(world.observations[136, :4], [0.1265, -0.1992, 0.0830, 0.1652], atol=5e-5)
    assert world.observations.std() == pytest.approx(0.4756, abs=5e-5)
    walls = world.observations[(random_layout() == WALL).ravel()]
    assert walls.std() == pytest.approx(0.955, abs=1e-3)


def test_smoothing_makes_neighbours_alike():
    def roughness(name):
        world = gridworld(name)
        free = np.flatnonzero((random_layout() != WALL).ravel())
        seen = world.observations[free]
        neighbours = world.observations[world.successors[free, RIGHT]]
        return np.square(seen - neighbours).mean() / seen.var()

    assert roughness("grid16smoothobs") < 0.25 * roughness("grid16randomobs")


def test_building_a_world_leaves_the_global_generators_alone():
    before = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    gridworld("grid16smoothobs", lava=0.1)
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(legacy=False), before[1])  # noqa: NPY002


def test_sampled_steps_follow_the_matrix():
    world, generator = gridworld("grid16smoothobs"), np.random.default_rng(0)
    reached = np.bincount([world.step(136, RIGHT, generator) for _ in range(20_000)], minlength=256) / 20_000
    # Standard errors are at most 0.0014.
    np.testing.assert_allclose(reached, world.transitions[136, RIGHT], atol=0.006)
    assert reached[137] < 1


def test_matrix_only_noise_leaves_sampled_steps_deterministic():
    quiet, generator = gridworld("grid16smoothobs", matrix_only_noise=True), np.random.default_rng(0)
    assert {quiet.step(136, RIGHT, generator) for _ in range(500)} == {137}
    np.testing.assert_array_equal(quiet.transitions, gridworld("grid16smoothobs").transitions)


@pytest.mark.parametrize("name", ["grid16smoothobs", "grid16smoothsparse"])
def test_lava_is_a_costly_trap_that_spares_a_way_to_the_goal(name):
    world = gridworld(name, lava=0.2)
    tiles = random_layout(lava=0.2)
    lava = np.flatnonzero((tiles == LAVA).ravel())
    assert len(lava) == round(0.2 * 203)  # of the free cells without start and goal
    assert (world.rewards[lava] == -1).all()
    np.testing.assert_allclose(world.transitions[lava, :, lava], 1)
    assert world.goal in reachable(tiles)
    assert find(tiles, GOAL) == (0, 0)
    assert find(tiles, START) == (8, 8)
    assert world.layout.replace(LAVA, "O") == MAZE


def test_the_number_of_observed_features_is_a_parameter():
    assert gridworld("grid16randomobs", dim_obs=3).observations.shape == (256, 3)


@pytest.mark.parametrize("name", GRIDWORLDS)
def test_the_plain_worlds_are_spelled_by_their_names_alone(name):
    assert gridworld(name).word == name
    assert gridworld(name, dim_obs=16, lava=0, matrix_only_noise=False).word == name
    assert spelled_gridworld(name) is gridworld(name, dim_obs=16, lava=0.0, matrix_only_noise=False)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"lava": 0.1}, "grid16smoothobs:lava=0.1"),
        ({"lava": np.float32(0.1)}, "grid16smoothobs:lava=0.10000000149011612"),
        ({"matrix_only_noise": True, "dim_obs": 3}, "grid16smoothobs:dim_obs=3:matrix_only_noise"),
    ],
)
def test_a_changed_world_is_rebuilt_from_its_word(options, word):
    world = gridworld("grid16smoothobs", **options)
    assert world.word == word
    again = spelled_gridworld(word)
    assert (again.layout, again.action_noise) == (world.layout, world.action_noise)
    np.testing.assert_array_equal(again.observations, world.observations)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("grid17:lava=0.1", "no gridworld named 'grid17'"),
        ("grid16smoothobs:lava=much", "lava must be a number, not 'much'"),
        ("grid16smoothobs:size=9", "no setting 'size'; it has dim_obs, lava, matrix_only_noise"),
    ],
)
def test_a_word_that_spells_no_world_is_refused(word, says):
    assert is_gridworld(word) == word.startswith("grid16smoothobs:")
    with pytest.raises(UserError, match=says):
        spelled_gridworld(word)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "grid17"}, "grid16smoothsparse"),
        ({"name": "grid16smoothobs", "dim_obs": 0}, "dim_obs"),
        ({"name": "grid16smoothobs", "lava": -0.1}, "-0.1"),
        ({"name": "grid16smoothobs", "lava": 0.999}, "cut the start off"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, words):
    with pytest.raises(UserError, match=words):
        gridworld(**arguments)
