"""Files that are whole or not there, and what is said of those that are neither."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dr3.errors import UserError
from dr3.files import (
    check_file,
    check_folder,
    clear_unfinished,
    for_json,
    read_json,
    read_lines,
    write_json,
    write_text,
    written_whole,
)


def test_a_record_comes_back_and_its_folder_is_made(tmp_path):
    file = tmp_path / "a" / "b" / "record.json"
    write_json(file, {"word": "φ", "list": [1, 2.5, None]})
    assert read_json(file, word=str) == {"word": "φ", "list": [1, 2.5, None]}
    assert [one.name for one in file.parent.iterdir()] == ["record.json"]


def test_what_cannot_be_finished_leaves_what_was_there(tmp_path):
    def half() -> None:
        with written_whole(file) as unfinished:
            unfinished.write_text("as it")
            raise OSError(28, "No space left on device")

    file = tmp_path / "x.txt"
    write_text(file, "as it was")
    with pytest.raises(OSError, match="No space left"):
        half()
    assert file.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_in_no_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="the folder it should be written to does not exist"):
        written_whole(tmp_path / "none" / "x.npz").__enter__()


def test_what_a_kill_left_of_one_file_goes_and_of_another_stays(tmp_path):
    for name in (".x.json.7.unfinished", ".x.json.8.unfinished", ".y.json.7.unfinished", "x.json"):
        (tmp_path / name).write_text("")
    clear_unfinished(tmp_path, "x.json")
    assert sorted(file.name for file in tmp_path.iterdir()) == [".y.json.7.unfinished", "x.json"]
    clear_unfinished(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_json_holds_no_nan_and_no_numpy():
    value = {1: np.float32(0.5), "b": (np.nan, float("inf"), np.int64(3)), "c": {"d": [True, None, "e"]}}
    assert for_json(value) == {"1": 0.5, "b": [None, None, 3], "c": {"d": [True, None, "e"]}}
    json.dumps(for_json(value), allow_nan=False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no such file"),
        ("{", "is damaged: it is not JSON"),
        ("[1]", "its 'step' is missing or of another kind"),
        ('{"step": "5"}', "its 'step' is missing or of another kind"),
    ],
)
def test_a_record_that_is_none_is_said(tmp_path, content, says):
    file = tmp_path / "status.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=says):
        read_json(file, step=int)


def test_a_torn_last_line_is_left_out_and_one_in_the_middle_refused(tmp_path):
    file = tmp_path / "rows.jsonl"
    assert read_lines(file) == []
    file.write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert read_lines(file) == [{"step": 1}, {"step": 2}]
    file.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(UserError, match="line 2 is not JSON"):
        read_lines(file)


def test_places_where_nothing_can_be_written_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    check_folder(tmp_path / "new" / "folder")
    check_file(tmp_path / "new" / "x.json")
    for check in (check_folder, check_file):
        with pytest.raises(UserError, match=r"cannot be a folder: .*file is a file"):
            check(tmp_path / "file" / "deep" / "x")
    with pytest.raises(UserError, match="is a folder, but a file is to be written"):
        check_file(tmp_path)
