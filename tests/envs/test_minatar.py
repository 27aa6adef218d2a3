from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dr3.envs import MINATAR, minatar
from dr3.envs.minatar import _game
from dr3.errors import UserError


@pytest.fixture
def breakout():
    pytest.importorskip("pgx")
    return minatar("minatar/breakout")


def test_every_game_has_a_board_and_its_own_actions() -> None:
    pytest.importorskip("pgx")
    found = {name: (minatar(name).observation_shape, minatar(name).actions) for name in MINATAR}
    assert found == {
        "minatar/asterix": ((10, 10, 4), 5),
        "minatar/breakout": ((10, 10, 4), 3),
        "minatar/freeway": ((10, 10, 7), 3),
        "minatar/seaquest": ((10, 10, 10), 6),
        "minatar/space_invaders": ((10, 10, 6), 4),
    }


@pytest.mark.slow
def test_a_paddle_that_stays_in_column_4(breakout) -> None:
    """The ball falls diagonally from row 3 of a corner: from the left it passes column 4 too high and is lost on row 9
    after six steps; from the right it comes down on the paddle, and goes back up.
    """

    @jax.jit
    @jax.vmap
    def fall(key):
        state, first = breakout.reset(key)
        boards, ends = [first], []
        for _ in range(6):
            after = breakout.step(state, jnp.int32(0), key)
            state = after.state
            boards.append(after.observation)
            ends.append(after.terminal)
        return jnp.stack(boards), jnp.stack(ends)

    boards, ends = fall(jax.random.split(jax.random.key(0), 8))
    assert boards.dtype == bool
    assert (np.asarray(boards[:, 0, ..., 3]).sum(axis=(1, 2)) == 30).all()  # three rows of bricks
    starts = []
    for board, end in zip(np.asarray(boards), np.asarray(ends), strict=True):
        rows, columns = np.nonzero(board[..., 1].any(axis=2))[1], np.nonzero(board[..., 1].any(axis=1))[1]
        starts.append(int(columns[0]))
        lost = columns[0] == 0
        assert rows.tolist() == [3, 4, 5, 6, 7, 8, 9 if lost else 8]
        assert end.tolist() == [False] * 5 + [bool(lost)]
    assert set(starts) == {0, 9}


def test_copies_side_by_side_are_the_same_as_one_by_one(breakout) -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    _, together = jax.jit(jax.vmap(breakout.reset))(keys)
    np.testing.assert_array_equal(together, np.stack([breakout.reset(key)[1] for key in keys]))


def test_an_unknown_game_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match=r"no game 'minatar/pong'.*minatar/breakout"):
        minatar("minatar/pong")


def test_without_pgx_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(UserError, match=r"pip install 'dr3\[minatar\]'"):
        _game.__wrapped__("minatar/breakout")
