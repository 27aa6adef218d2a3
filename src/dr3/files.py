"""Files: refused before the work if they cannot be written, written whole or not at all, read with a clear sentence."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import IO, Any

import numpy as np

from dr3.errors import UserError


def exists(path: Path) -> bool:
    """Whether it is there; what cannot be a name (one too long, say) is not."""
    try:
        return path.exists()
    except OSError:
        return False


def check_folder(path: Path) -> None:
    """Refuse a place where no folder is nor can be made: before the work, not after it."""
    check_name(path)
    place = path.absolute()
    nearest = next(one for one in (place, *place.parents) if one.exists())
    if not nearest.is_dir():
        raise UserError(f"{path} cannot be a folder: {nearest} is a file.")
    if not os.access(nearest, os.W_OK):
        raise UserError(f"{path} cannot be a folder: nothing may be written into {nearest}.")


def check_file(path: Path) -> None:
    """Refuse a place where no file can be written, as `check_folder` does."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, but a file is to be written; give it a name.")
    check_folder(path.parent)


def check_name(path: Path) -> None:
    """Refuse what no system takes for a name."""
    if "\0" in str(path):
        raise UserError(f"{str(path)!r} holds a zero byte, which no name of a file can.")


@contextmanager
def written_whole(path: Path) -> Generator[Path]:
    """A name beside `path` to write to; when all went well and is on the disk it becomes `path`, when not it vanishes.

    The process is in the name because two may write one file. What a kill leaves is for `clear_unfinished`.
    """
    check_name(path)
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder it should be written to does not exist.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.unlink(missing_ok=True)  # a link that somebody has laid there must not be written through
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield unfinished
        with unfinished.open("rb+") as stream:
            os.fsync(stream.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def clear_unfinished(folder: Path, name: str = "*") -> None:
    """Remove what killed writers of such files left: for the one process that may write them now."""
    for file in folder.glob(f".{name}.*.unfinished"):
        if file.is_symlink() or not file.is_dir():  # a folder is nobody's unfinished file
            file.unlink()


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step, making its folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as unfinished:
        # A path that is not UTF-8 comes as half a surrogate, which is written as JSON's own escape: \\udcff.
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, record: Any) -> None:
    """The same for a record; `for_json` makes it one that JSON can hold."""
    write_text(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def for_json(value: Any) -> Any:
    """As JSON can hold it: numpy's numbers as Python's, null for what is not finite, words for keys."""
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sha256_of(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, opened to be read; a pipe or a device, which would be waited for, is refused."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:  # the latter of a name with a zero byte in it
        raise UserError(f"{path}: the file cannot be opened ({getattr(error, 'strerror', error)}).") from None
    kind = os.fstat(number).st_mode
    if not stat.S_ISREG(kind):
        os.close(number)
        what = "folder" if stat.S_ISDIR(kind) else "pipe or device"
        raise UserError(f"{path}: this is a {what}, but a file is needed.")
    return os.fdopen(number, "rb")


def open_to_append(path: Path) -> IO[bytes]:
    """A regular file, opened for more at its end; a link is not followed, for it may lead to a file of one's own."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # the latter so that a pipe is not waited for
    refuse_link(path)
    number = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise UserError(f"{path}: this is a pipe or device, but a file is needed.")
    return os.fdopen(number, "ab")


def refuse_link(path: Path) -> None:
    """Of what may have come from a stranger, before anything is written there."""
    if path.is_symlink():
        raise UserError(f"{path} is a link, which is not written through; put what it leads to in its place.")


def parse_json(text: str | bytes) -> Any:
    """What a text says in JSON; ValueError where it says nothing, or a whole number that no column can hold."""
    try:
        return json.loads(text, parse_int=_in_64_bits)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _in_64_bits(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{digits[:20]}… is beyond 64 bits")
    return number


def read_toml(file: Path) -> dict[str, Any]:
    """The table in a TOML file."""
    try:
        with open_regular(file) as stream:
            return tomllib.loads(stream.read().decode("utf-8"))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise UserError(f"{file} is not TOML: it is nested too deeply.") from None
    except ValueError as error:  # also of a number with too many digits, and of bytes that are no text
        raise UserError(f"{file} is not TOML: {str(error).splitlines()[0].rstrip('.')}.") from None


def read_json(file: Path, **needed: type | UnionType) -> dict[str, Any]:
    """The record in a JSON file, with every field that is `needed`, of its type."""
    try:
        with open_regular(file) as stream:
            record = parse_json(stream.read())
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UserError(f"{file} is damaged: it is not JSON.") from None
    record = record if isinstance(record, dict) else {}
    for name, kind in needed.items():
        if not isinstance(record.get(name), kind):
            raise UserError(f"{file} is damaged or not one of dr3's: its {name!r} is missing or of another kind.")
    return record


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file. A last line that was cut short is left out; one in the middle is an error."""
    if not file.exists():
        return []
    with open_regular(file) as stream:
        lines = stream.read().split(b"\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            rows.append(parse_json(line))
        except ValueError:
            if number < len(lines):
                raise UserError(f"{file} is damaged: line {number} is not JSON.") from None
    return rows
