from __future__ import annotations

import os

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.data import Frames, load, read_cog, read_npz
from dr3.errors import UserError

STEPS = 3


def trajectory(first: int) -> dict:
    """As the original's collector stores it: frame t is filled with first + t."""
    images = [{"image": np.full((4, 4, 3), first + t, np.uint8), "state": np.zeros(10)} for t in range(STEPS + 1)]
    return {
        "observations": images[:-1],
        "next_observations": images[1:],
        "actions": [np.full(8, 0.1 * t, np.float32) for t in range(STEPS)],
        "rewards": [0.0, 0.0, np.float64(1.0)],
        "terminals": [False] * STEPS,
        "agent_infos": [{}] * STEPS,
        "env_infos": [{"grasp_success": np.bool_(True)}] * STEPS,
    }


def write(path, trajectories) -> None:
    table = np.empty(len(trajectories), object)
    table[:] = trajectories
    np.save(path, table, allow_pickle=True)


@pytest.fixture
def file(tmp_path):
    write(tmp_path / "drawer_task.npy", [trajectory(0), trajectory(100)])
    return tmp_path / "drawer_task.npy"


def test_every_row_and_each_frame_once(file) -> None:
    with pytest.warns(UserWarning, match="is a pickle"):
        data = read_cog(file, allow_pickle=True)
    assert isinstance(data.observations, Frames)
    assert data.observations[:][:, 0, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert data.next_observations[:][:, 0, 0, 0].tolist() == [1, 2, 3, 101, 102, 103]
    assert len(data.observations.stored) == 2 * (STEPS + 1)
    assert data.actions.shape == (6, 8)
    assert data.rewards.tolist() == [0, 0, 1] * 2
    assert data.episodes.tolist() == [0, 0, 0, 1, 1, 1]
    assert not data.terminals.any()
    assert data.timeouts.tolist() == [False, False, True] * 2
    assert data.returns[0] == pytest.approx(0.99**2)


def test_a_next_image_that_is_not_the_following_one_is_kept(tmp_path) -> None:
    odd = trajectory(0)
    odd["next_observations"] = [{"image": np.full((4, 4, 3), 50 + t, np.uint8)} for t in range(STEPS)]
    write(tmp_path / "odd.npy", [odd])
    with pytest.warns(UserWarning, match="is a pickle"):
        data = read_cog(tmp_path / "odd.npy", allow_pickle=True)
    assert data.observations[:][:, 0, 0, 0].tolist() == [0, 1, 2]
    assert data.next_observations[:][:, 0, 0, 0].tolist() == [50, 51, 52]


def test_without_leave_it_says_what_to_do(file) -> None:
    with pytest.raises(UserError, match=r"dr3 data convert .*drawer_task.npy .*drawer_task.npz --allow-pickle"):
        load(file)


def test_prior_rewards_are_forgotten_when_told(file) -> None:
    with pytest.warns(UserWarning, match="is a pickle"):
        data = load(f"{file}:zero_rewards=true", allow_pickle=True)
    assert not data.rewards.any()


def test_converted_it_is_a_plain_file(file, tmp_path, capsys) -> None:
    out = tmp_path / "task.npz"
    assert invoke(["data", "convert", str(file), str(out)]) == 2
    assert "--allow-pickle" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="is a pickle"):
        assert invoke(["data", "convert", str(file), str(out), "--allow-pickle"]) == 0
    with pytest.warns(UserWarning, match="is a pickle"):
        data = load(file, allow_pickle=True)
    assert "6 rows in 2 episodes" in capsys.readouterr().out
    assert read_npz(out).fingerprint() == data.fingerprint()
    assert invoke(["data", "convert", str(file), str(out), "--allow-pickle"]) == 2


class Program:
    def __reduce__(self):
        return os.mkdir, ("made-by-a-pickle",)


@pytest.mark.filterwarnings("ignore:.*is a pickle")
def test_a_pickle_that_is_a_program_is_not_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bad.npy", [Program()])
    with pytest.raises(UserError, match=r"holds more than numbers \(it asks for posix.mkdir\)"):
        read_cog(tmp_path / "bad.npy", allow_pickle=True)
    assert not (tmp_path / "made-by-a-pickle").exists()


@pytest.mark.filterwarnings("ignore:.*is a pickle")
def test_files_that_are_something_else_are_refused(tmp_path) -> None:
    path = tmp_path / "other.npy"
    np.save(path, np.zeros(3))
    with pytest.raises(UserError, match="a COG file is a row of trajectories"):
        read_cog(path, allow_pickle=True)
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"not a \.npy file"):
        read_cog(path, allow_pickle=True)
    without = trajectory(0)
    del without["rewards"]
    write(path, [trajectory(0), without])
    with pytest.raises(UserError, match="trajectory 1 has no 'rewards'"):
        read_cog(path, allow_pickle=True)
    short = trajectory(0) | {"actions": []}
    write(path, [short])
    with pytest.raises(UserError, match="trajectory 0 has fields of different or no length"):
        read_cog(path, allow_pickle=True)
    blind = trajectory(0)
    blind["observations"] = [{"state": np.zeros(10)}] * STEPS
    write(path, [blind])
    with pytest.raises(UserError, match="step 0 of trajectory 0 has no 'image'"):
        read_cog(path, allow_pickle=True)
    write(path, [trajectory(0)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="damaged"):
        read_cog(path, allow_pickle=True)
    with pytest.raises(UserError, match="no such file"):
        read_cog(tmp_path / "none.npy", allow_pickle=True)


@pytest.mark.filterwarnings("ignore:.*is a pickle")
def test_a_file_without_trajectories_is_refused(tmp_path) -> None:
    write(tmp_path / "none.npy", [])
    with pytest.raises(UserError, match=r"none\.npy: it has no trajectories"):
        read_cog(tmp_path / "none.npy", allow_pickle=True)


BROKEN = {
    "ragged": ({"actions": [[0.0, 0.0], [0.0], [0.0]]}, "the rows of 'actions' are of different lengths"),
    "narrower": ({"actions": [[0.0]] * STEPS}, r"a row of 'actions' has shape \(1,\), but in trajectory 0 \(8,\)"),
    "text": ({"actions": [["up"]] * STEPS}, "'actions' holds values of type <U2"),
    "nothing": ({"rewards": [0.0, None, 0.0]}, "'rewards' holds values of type object"),
    "two rewards": ({"rewards": [[0.0, 1.0]] * STEPS}, r"'rewards' has shape \(3, 2\)"),
    "no flag": ({"terminals": [False, False, 2]}, "row 2 of 'terminals' is 2, but it must be true or false"),
}


@pytest.mark.filterwarnings("ignore:.*is a pickle")
@pytest.mark.parametrize(("changes", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_steps_are_refused_by_file_trajectory_and_field(tmp_path, changes, words) -> None:
    write(tmp_path / "bad.npy", [trajectory(0), trajectory(100) | changes])
    with pytest.raises(UserError, match=rf"bad\.npy, trajectory 1: {words}"):
        read_cog(tmp_path / "bad.npy", allow_pickle=True)


@pytest.mark.filterwarnings("ignore:.*is a pickle")
@pytest.mark.parametrize("values", [None, np.array(True), {"image": np.zeros((STEPS, 4, 4, 3), np.uint8)}])
def test_a_field_that_is_no_list_is_refused(tmp_path, values) -> None:
    write(tmp_path / "bad.npy", [trajectory(0) | {"terminals": values}])
    with pytest.raises(UserError, match=r"bad\.npy: the 'terminals' of trajectory 0 are no list"):
        read_cog(tmp_path / "bad.npy", allow_pickle=True)


@pytest.mark.filterwarnings("ignore:.*is a pickle")
def test_an_image_that_is_no_array_is_refused(tmp_path) -> None:
    write(tmp_path / "bad.npy", [trajectory(0) | {"observations": [{"image": [[1, 2], [3]]}] * STEPS}])
    with pytest.raises(UserError, match="step 0 of trajectory 0 has no 'image'"):
        read_cog(tmp_path / "bad.npy", allow_pickle=True)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"K\x01K\x02\x85", b"K\x01K\x12\x85", r"shape \(18,\) has 2 objects"),  # numpy would read behind the list
        (b"\x94.", b"r\xff\xff\xff\x7f.", "remembers things up to number 2147483647"),  # Python would take 16 GB
    ],
)
def test_numbers_in_a_pickle_are_not_believed(tmp_path, old, new, said) -> None:
    objects = np.empty(2, object)
    objects[:] = [{"a": 1}, {"b": 2}]
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    content = (tmp_path / "a.npy").read_bytes()
    content = content if old in content else content.replace(b"b.", b"b\x94.")
    assert old in content
    (tmp_path / "a.npy").write_bytes(content.replace(old, new))
    with pytest.warns(UserWarning, match="pickle"), pytest.raises(UserError, match=said):
        read_cog(tmp_path / "a.npy", allow_pickle=True)
