from __future__ import annotations

import gzip
import shutil

import numpy as np
import pytest

from dr3.data import Frames, load, read_dqn_replay, write_dqn_replay
from dr3.data.transitions import DiscreteActions
from dr3.errors import UserError

LENGTHS = (5, 1, 9, 7)


@pytest.fixture(scope="session")
def steps():
    """Four episodes of 4 x 4 frames, of which the last is cut."""
    random = np.random.default_rng(0)
    count = sum(LENGTHS)
    terminals = np.zeros(count, np.bool_)
    terminals[np.cumsum(LENGTHS)[:-1] - 1] = True
    return {
        "frames": random.integers(1, 256, (count, 4, 4)).astype(np.uint8),
        "actions": random.integers(3, size=count),
        "rewards": random.normal(size=count).astype(np.float32),
        "terminals": terminals,
    }


@pytest.fixture
def folder(steps, tmp_path):
    write_dqn_replay(tmp_path / "game", **steps, rows_per_file=16)  # 22 steps and 12 rows of padding: three files
    return tmp_path / "game"


def independent_reader(folder, files: int):
    """Transitions as the online agent's own buffer would hand them out: one array at a time, row by row."""
    arrays = {}
    for name in ("observation", "action", "reward", "terminal"):
        parts = []
        for number in range(files):
            with gzip.open(folder / f"$store$_{name}_ckpt.{number}.gz", "rb") as stream:
                parts.append(np.load(stream))
        arrays[name] = np.concatenate(parts)
    with gzip.open(folder / f"add_count_ckpt.{files - 1}.gz", "rb") as stream:
        added = int(np.load(stream))
    found = []
    for t in range(3, added):
        if arrays["terminal"][t - 3 : t].any() or (t + 1 == added and not arrays["terminal"][t]):
            continue
        state = np.stack([arrays["observation"][t - back] for back in (3, 2, 1, 0)], axis=-1)
        after = np.stack([arrays["observation"][t + 1 - back] for back in (3, 2, 1, 0)], axis=-1)
        found.append((state, arrays["action"][t], arrays["reward"][t], after, bool(arrays["terminal"][t])))
    return found


def test_what_is_written_is_what_an_independent_reader_finds(folder, steps) -> None:
    data = read_dqn_replay(folder)
    expected = independent_reader(folder, 3)
    assert len(data) == len(expected) == sum(LENGTHS) - 1  # of the last step s' is unknown
    for row, (state, action, reward, after, terminal) in enumerate(expected):
        np.testing.assert_array_equal(data.observations[row], state)
        assert (data.actions[row], data.rewards[row], data.terminals[row]) == (action, reward, terminal)
        if not terminal:
            np.testing.assert_array_equal(data.next_observations[row], after)
    np.testing.assert_array_equal(data.actions, steps["actions"][:-1])


def test_a_part_is_of_fifty_files_and_not_of_the_short_one_after_them(folder, monkeypatch) -> None:
    monkeypatch.setattr("dr3.data.subsets.PARTS", 2)
    part = read_dqn_replay(folder, part="100%")
    whole = read_dqn_replay(folder)
    assert len(read_dqn_replay(folder, part="first-100%")) == len(part) < len(whole)
    np.testing.assert_array_equal(part.actions, whole.actions[: len(part)])


def test_an_episode_begins_behind_blank_frames(folder, steps) -> None:
    data = read_dqn_replay(folder)
    first = data.observations[5]  # the second episode's only row
    assert not first[..., :3].any()
    np.testing.assert_array_equal(first[..., 3], steps["frames"][5])
    assert data.observations.shape == (21, 4, 4, 4)
    assert np.bincount(data.episodes).tolist() == [5, 1, 9, 6]
    assert data.timeouts.tolist() == [False] * 20 + [True]
    assert data.next_action_known.tolist() == (~data.terminals).tolist()
    assert data.next_actions[-1] == steps["actions"][-1]


def test_frames_are_unpacked_once_and_mapped(folder) -> None:
    one = read_dqn_replay(folder)
    cached = list((folder / ".dr3-cache").iterdir())
    assert len(cached) == 1
    assert isinstance(one.observations, Frames)
    assert isinstance(one.observations.stored, np.memmap)
    stamp = cached[0].stat().st_mtime_ns
    again = read_dqn_replay(folder)
    assert cached[0].stat().st_mtime_ns == stamp
    assert again.fingerprint() == one.fingerprint()


def test_rows_are_written_and_unpacked_some_at_a_time(folder, steps, tmp_path, monkeypatch) -> None:
    for module in ("dqn_replay", "dqn_replay_files"):
        monkeypatch.setattr(f"dr3.data.{module}.ROWS_AT_A_TIME", 3)
    write_dqn_replay(tmp_path / "by three", **steps, rows_per_file=16)
    for file in folder.glob("*.gz"):
        assert gzip.decompress((tmp_path / "by three" / file.name).read_bytes()) == gzip.decompress(file.read_bytes())
    by_three, whole = read_dqn_replay(tmp_path / "by three"), read_dqn_replay(folder)
    np.testing.assert_array_equal(by_three.observations[:], whole.observations[:])


def test_much_unpacking_says_how_far_it_is(folder, monkeypatch, capsys) -> None:
    read_dqn_replay(folder, cache=folder / "few")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("dr3.data.dqn_replay.MANY", 10)
    read_dqn_replay(folder)
    assert "34 of 34 frames (100 %)" in capsys.readouterr().err


def test_frames_that_the_disk_has_no_room_for_are_refused_before_they_are_unpacked(folder, monkeypatch) -> None:
    full = shutil.disk_usage(folder)._replace(free=34 * 16 - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda of: full)
    with pytest.raises(UserError, match=r"there are 0\.0 GB free; ask for a part, or name another folder"):
        read_dqn_replay(folder)
    assert not list((folder / ".dr3-cache").iterdir())


def test_a_part_of_each_file_cuts_its_episodes(folder, steps) -> None:
    data = load(f"{folder}:replay=40%")
    # Six rows of the first file: three of padding, two of the first episode, and one whose s' is left out. Six of the
    # second, in the middle of an episode: the first three have no whole stack, the last no next frame. One of the last.
    assert data.actions.tolist() == [*steps["actions"][:2], *steps["actions"][10:12]]
    assert data.timeouts.tolist() == [False, True, False, True]
    assert data.next_actions.tolist() == [*steps["actions"][1:3], *steps["actions"][11:13]]
    assert data.next_action_known.all()
    assert data.name == "game-40%"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Pong/1/replay_logs", "Pong-1"),
        ("Breakout/1/replay_logs", "Breakout-1"),
        ("mine/replay_logs", "mine"),
        ("Pong/1", "Pong-1"),
        ("mine", "mine"),
    ],
)
def test_a_folder_is_named_by_its_path(folder, tmp_path, path, name) -> None:
    shutil.copytree(folder, tmp_path / path)
    assert read_dqn_replay(tmp_path / path).name == name
    assert read_dqn_replay(tmp_path / path, part="first-2%").name == f"{name}-first-2%"


def test_a_word_says_where_it_is_unpacked_and_how_many_actions_there_are(folder, tmp_path) -> None:
    data = load(f"{folder}:cache={tmp_path / 'elsewhere'}:num_actions=9")
    assert data.action_space == DiscreteActions(9)
    assert [file.suffix for file in (tmp_path / "elsewhere").iterdir()] == [".npy"]
    assert not (folder / ".dr3-cache").exists()
    with pytest.raises(UserError, match="num_actions is a setting of DQN-replay folders, and this is none"):
        load("sample:minatar-breakout-1%:num_actions=6")


def test_the_first_files_of_fifty(folder, steps) -> None:
    data = read_dqn_replay(folder, part="first-2%")
    # The third episode begins in the last row of the first file: its s' is in the second.
    assert data.actions.tolist() == steps["actions"][:6].tolist()


@pytest.mark.parametrize(("part", "count"), [("first-25%", 5), ("first-75%", 15)])
def test_the_first_rows_end_inside_a_file_where_the_share_does(folder, steps, monkeypatch, part, count) -> None:
    """Of two files of 16 rows the first 8 are the first episode; 8 of the second reach to the third episode's end."""
    monkeypatch.setattr("dr3.data.subsets.PARTS", 2)
    data = read_dqn_replay(folder, part=part)
    assert data.actions.tolist() == steps["actions"][:count].tolist()
    assert not data.timeouts.any()


def from_step_to_step(rewards, first: int, last: int) -> float:
    """The return at discount 0.5."""
    return sum(float(rewards[step]) * 0.5 ** (step - first) for step in range(first, last + 1))


def test_the_returns_of_a_part_go_on_behind_its_edge(folder, steps) -> None:
    data = read_dqn_replay(folder, part="40%", discount=0.5)
    # Two steps of the first episode, 0 to 4, and two of the third, which goes on to 14.
    expected = [from_step_to_step(steps["rewards"], *ends) for ends in ((0, 4), (1, 4), (10, 14), (11, 14))]
    np.testing.assert_allclose(data.returns, expected, rtol=1e-6)


def test_the_returns_of_a_part_go_on_over_the_edge_of_a_file(steps, tmp_path) -> None:
    """Files of 20 rows: the third episode, steps 6 to 14, is in the rows 15 to 23, and the part ends at row 17."""
    write_dqn_replay(tmp_path / "game", **steps, rows_per_file=20)
    data = read_dqn_replay(tmp_path / "game", part="90%", discount=0.5)
    assert data.actions[6:8].tolist() == steps["actions"][6:8].tolist()
    np.testing.assert_allclose(data.returns[6], from_step_to_step(steps["rewards"], 6, 14), rtol=1e-6)


def test_returns_stop_at_a_gap_with_the_last_reward_before_it(steps, tmp_path) -> None:
    """Row 19 is missing: step 9, in row 18, has no s' and is no transition, but its reward was paid."""
    write_dqn_replay(tmp_path / "game", **steps, rows_per_file=20)
    damage(tmp_path / "game", "add_count_ckpt.0.gz", np.array(19))
    data = read_dqn_replay(tmp_path / "game", discount=0.5)
    assert data.timeouts[8]
    assert data.rewards[9] != steps["rewards"][9]
    np.testing.assert_allclose(data.returns[8], from_step_to_step(steps["rewards"], 8, 9), rtol=1e-6)


def test_a_buffer_saved_before_its_last_row_leaves_a_gap(folder, steps) -> None:
    """The public files: saved at add_count = 15, 31, …, so row 15 of each is not its own."""
    for number, count in ((0, 15), (1, 31)):
        with gzip.open(folder / f"add_count_ckpt.{number}.gz", "wb") as stream:
            np.save(stream, np.array(count))
    data = read_dqn_replay(folder)
    # Episodes 1 and 2; of the third what has a whole stack in the second file; of the fourth what has a next frame.
    kept = [*range(6), *range(10, 15), *range(15, 18)]
    assert data.actions.tolist() == steps["actions"][kept].tolist()
    np.testing.assert_array_equal(data.rewards, steps["rewards"][kept])
    assert np.flatnonzero(data.timeouts).tolist() == [13]


def damage(folder, name: str, values: np.ndarray) -> None:
    with gzip.open(folder / name, "wb") as stream:
        np.save(stream, values)


def cut(file, rest: int) -> None:
    file.write_bytes(file.read_bytes()[:-rest])


def with_wrong_checksum(file) -> None:
    content = bytearray(file.read_bytes())
    content[-8] ^= 0xFF  # four bytes of checksum and four of length are the end of a gzip file
    file.write_bytes(content)


def not_finite(row: int, value: float) -> np.ndarray:
    rewards = np.zeros(16, np.float32)
    rewards[row] = value
    return rewards


DAMAGED = "the file is damaged or was cut short"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: (f / "$store$_reward_ckpt.1.gz").unlink(), r"\$store\$_reward_ckpt.1.gz: there is no such file"),
        (lambda f: (f / "$store$_action_ckpt.1.gz").unlink(), r"\$store\$_action_ckpt.1.gz: there is no such file"),
        (lambda f: (f / "$store$_observation_ckpt.2.gz").unlink(), r"observation_ckpt.2.gz: there is no such file"),
        (lambda f: (f / "invalid_range_ckpt.0.gz").unlink(), r"invalid_range_ckpt.0.gz: there is no such file"),
        (lambda f: damage(f, "$store$_action_ckpt.0.gz", np.zeros(16)), r"action_ckpt.0.gz: .*float64, but int32"),
        (lambda f: damage(f, "$store$_reward_ckpt.0.gz", np.zeros(9, np.float32)), r"reward_ckpt.0.gz: it has 9 rows"),
        (lambda f: damage(f, "$store$_terminal_ckpt.0.gz", np.full(16, 2, np.uint8)), r"row 0 is 2, but it must be"),
        (
            lambda f: damage(f, "add_count_ckpt.1.gz", np.array(0)),
            r"add_count_ckpt.1.gz: it must hold one whole number",
        ),
        (
            lambda f: damage(f, "$store$_observation_ckpt.1.gz", np.zeros((16, 3, 4), np.uint8)),
            r"observation_ckpt.1.gz: its frames are \(3, 4\)",
        ),
        (
            lambda f: (f / "$store$_reward_ckpt.0.gz").write_bytes((f / "$store$_reward_ckpt.0.gz").read_bytes()[:60]),
            r"reward_ckpt.0.gz: the file is damaged or was cut short",
        ),
        (
            lambda f: (f / "$store$_observation_ckpt.1.gz").write_bytes(
                (f / "$store$_observation_ckpt.1.gz").read_bytes()[:150]
            ),
            r"observation_ckpt.1.gz: the file is damaged or was cut short",
        ),
        (lambda f: (f / "$store$_action_ckpt.0.gz").write_bytes(b"nothing"), r"action_ckpt.0.gz: the file is damaged"),
        (lambda f: with_wrong_checksum(f / "$store$_action_ckpt.1.gz"), rf"action_ckpt.1.gz: {DAMAGED}"),
        (lambda f: with_wrong_checksum(f / "add_count_ckpt.0.gz"), rf"add_count_ckpt.0.gz: {DAMAGED}"),
        (lambda f: with_wrong_checksum(f / "$store$_observation_ckpt.0.gz"), rf"observation_ckpt.0.gz: {DAMAGED}"),
        (lambda f: cut(f / "$store$_observation_ckpt.1.gz", 3), rf"observation_ckpt.1.gz: {DAMAGED}"),
        # Of the last file only some rows are its own.
        (lambda f: cut(f / "$store$_observation_ckpt.2.gz", 3), rf"observation_ckpt.2.gz: {DAMAGED}"),
        (
            lambda f: (f / "$store$_reward_ckpt.1.gz").write_bytes(2 * (f / "$store$_reward_ckpt.1.gz").read_bytes()),
            r"reward_ckpt.1.gz: it goes on behind its array",
        ),
        (
            lambda f: damage(f, "$store$_observation_ckpt.0.gz", np.zeros((40, 4, 4), np.uint8)),
            r"observation_ckpt.0.gz: it has 40 rows, but the actions of that checkpoint have 16",
        ),
        (lambda f: damage(f, "$store$_reward_ckpt.1.gz", not_finite(5, np.nan)), r"reward_ckpt.1.gz: row 5 is nan"),
        (lambda f: damage(f, "$store$_reward_ckpt.0.gz", not_finite(15, -np.inf)), r"reward_ckpt.0.gz: row 15 is -inf"),
        (
            lambda f: damage(f, "add_count_ckpt.1.gz", np.array(16)),
            r"add_count_ckpt.1.gz: its rows begin at number 0, but those of checkpoint 0 go on to 16",
        ),
        (lambda f: damage(f, "add_count_ckpt.0.gz", np.array(48)), r"add_count_ckpt.1.gz: its rows begin at number 16"),
        (
            lambda f: damage(f, "invalid_range_ckpt.0.gz", np.zeros(5)),
            r"invalid_range_ckpt.0.gz: it holds float64 of shape \(5,\)",
        ),
        (
            lambda f: damage(f, "invalid_range_ckpt.2.gz", np.zeros((5, 2), np.int64)),
            r"invalid_range_ckpt.2.gz: it holds int64 of shape \(5, 2\)",
        ),
        (
            lambda f: damage(f, "$store$_action_ckpt.0.gz", np.full(16, 2**30, np.int32)),
            r"game: its actions would be 1073741825, but there can be 65536 at most",
        ),
    ],
)
def test_broken_files_are_refused_by_name(folder, change, sentence) -> None:
    change(folder)
    with pytest.raises(UserError, match=sentence):
        read_dqn_replay(folder)
    assert not list(folder.glob(".dr3-cache/*.unfinished"))


def test_a_part_of_a_file_is_read_without_unpacking_the_rest(folder) -> None:
    cut(folder / "$store$_observation_ckpt.0.gz", 3)
    assert len(read_dqn_replay(folder, part="40%")) == 4
    with pytest.raises(UserError, match=rf"observation_ckpt.0.gz: {DAMAGED}"):
        read_dqn_replay(folder, part="100%")


def test_counts_may_jump_ahead(folder) -> None:
    before = read_dqn_replay(folder)
    for number, count in ((1, 64), (2, 66)):
        damage(folder, f"add_count_ckpt.{number}.gz", np.array(count))
    # Between the first two files there is now a gap: the episode across it is cut there.
    assert len(read_dqn_replay(folder)) == len(before) - 4


@pytest.mark.parametrize("part", ["40%", "first-10%"])
def test_a_part_needs_the_first_files(folder, part) -> None:
    for file in list(folder.glob("*_ckpt.0.gz")):
        file.unlink()
    with pytest.raises(UserError, match=r"action_ckpt.0.gz: there is no such file"):
        read_dqn_replay(folder, part=part)
    assert len(read_dqn_replay(folder)) == 5 + 6  # of the episodes that the two other files hold


def test_a_folder_without_files_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="no files of a DQN replay"):
        read_dqn_replay(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        read_dqn_replay(tmp_path)
