"""The gate that every reader passes: what a file may be, how large it may claim to be, and what its damage sounds like.

A reader is decorated with `gated`, opens files with `opened`, says with `announce` what it is about to unpack, and
reads numpy's arrays with `read_array`. Then no pipe is waited for, no header is believed before it is checked, an
archive that unpacks to gigabytes is not unpacked unasked, and whatever a library raises is one sentence.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np

from dr3.cores import machine_memory
from dr3.data.checks import Values, refuse
from dr3.errors import UserError
from dr3.files import open_regular, refuse_link

Settings = ParamSpec("Settings")
Read = TypeVar("Read")
Stream = IO[bytes] | GzipFile

VARIABLE = "DR3_FORCE"  # what --force sets, so that worker processes know it too
LARGE = 2**30  # bytes that are unpacked without a word
USUAL = 200  # the frames of Pong shrink to about a hundredth; what shrinks to less is a bomb, or damage
DEFLATE = 1032  # bytes that one byte of a zip or gzip file can become at most
BLOCK = 1 << 20
DAMAGED = "the file is damaged or was cut short; copy or write it again."

_forced: ContextVar[bool] = ContextVar("forced", default=False)
_nowhere: ContextVar[bool] = ContextVar("nowhere", default=False)


def gated(reader: Callable[Settings, Read]) -> Callable[Settings, Read]:
    """A reader `(path, …)` that ends in a table or in one sentence, whatever the file holds."""

    @functools.wraps(reader)
    def passed(*values: Settings.args, **named: Settings.kwargs) -> Read:
        path = values[0] if values else next(iter(named.values()), "data")
        try:
            return reader(*values, **named)
        except (UserError, Warning):
            raise
        except MemoryError:
            refuse(f"{path}", "it is larger than the memory, or claims to be; ask for a part of it, or copy it again.")
        except Exception as error:
            if isinstance(error, OSError) and error.strerror and error.errno:
                raise UserError(f"{error.filename or path}: it cannot be read ({error.strerror}).") from error
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(
                f"{path}: it is damaged or was cut short, or is not what its name says ({reason}); copy or write it "
                "again."
            ) from error

    passed.__dict__["gated"] = True
    return passed


def opened(path: str | os.PathLike[str]) -> IO[bytes]:
    """A regular file that is not empty, opened to be read; anything else is refused, and nothing is waited for."""
    stream = open_regular(Path(path))
    if os.fstat(stream.fileno()).st_size == 0:
        stream.close()
        refuse(str(path), "the file is empty (0 bytes).")
    return stream


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a file, or the sentence that says why there is none."""
    with opened(path) as file:
        return file.read(count)


@contextmanager
def forcing(force: bool) -> Generator[None]:
    """Within it, with `force`, whatever size a file declares is unpacked."""
    token = _forced.set(force or _forced.get())
    try:
        yield
    finally:
        _forced.reset(token)


@contextmanager
def unpacking_nowhere(nowhere: bool) -> Generator[None]:
    """Within it, with `nowhere`, a cache is only read: a record, which may be a stranger's, has named its folder."""
    token = _nowhere.set(nowhere)
    try:
        yield
    finally:
        _nowhere.reset(token)


def cache_beside(data: Path) -> Path:
    """The folder of a cache that the user has not named; a link that came with the data is not written through."""
    refuse_link(folder := data / ".dr3-cache")
    return folder


def check_may_unpack(file: Path) -> None:
    """To be asked before a cache is written."""
    if _nowhere.get():
        refuse(str(file), "nothing is unpacked there, and only you may say where: name the data again (--data).")


def announce(source: str, unpacked: int, stored: int) -> None:
    """Refuse to unpack gigabytes that nobody has asked for.

    Args:
        source: The file or folder.
        unpacked: Bytes in memory, or in a cache, as it declares them.
        stored: Bytes on the disk.
    """
    if unpacked <= LARGE or _forced.get() or os.environ.get(VARIABLE):
        return
    size = f"it unpacks to {unpacked / 1e9:,.1f} GB"
    if unpacked > USUAL * stored:
        refuse(source, f"{size} from {stored / 1e6:,.1f} MB, which no usual log does; say --force to read it.")
    if unpacked > (memory := machine_memory()):
        refuse(source, f"{size}, and this machine has {memory / 1e9:,.1f} GB of memory; say --force to try.")


def check_claim(source: str, unpacked: int, stored: int) -> None:
    """Refuse a header that claims more bytes than can come of those on the disk: it is damaged."""
    if unpacked > DEFLATE * stored + BLOCK:
        refuse(source, f"its header claims {unpacked:,} bytes, and {stored:,} hold less; copy or write it again.")


def read_array(stream: Stream, source: str, *, stored: int, size: int | None = None) -> Values:
    """The array of a .npy stream, pickles apart.

    Args:
        stream: At its beginning; plain, or of an archive.
        source: What to call it in a refusal.
        stored: Bytes that it takes on the disk: a header that claims more than can come of them is not believed.
        size: Bytes of the whole stream, where the archive tells.
    """
    shape, column_major, dtype, header = array_header(stream, source)
    needed = math.prod(shape) * dtype.itemsize
    if size is not None and header + needed != size:
        refuse(source, f"its header speaks of {needed:,} bytes, but {size - header:,} follow; it is damaged.")
    check_claim(source, needed, stored)
    announce(source, needed, stored)
    values = np.empty(math.prod(shape), dtype)
    room, filled = values.view(np.uint8) if needed else values, 0
    while filled < needed:
        block = stream.read(min(BLOCK, needed - filled))
        if not block:
            refuse(source, DAMAGED)
        room[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
        filled += len(block)
    return values.reshape(shape[::-1]).T if column_major else values.reshape(shape)


def array_header(
    stream: Stream, source: str, *, pickled: bool = False
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """The shape, whether it is stored by columns, the type, and the bytes of the header; objects only if `pickled`."""
    try:
        version = np.lib.format.read_magic(stream)
    except ValueError:
        refuse(source, "this is not a .npy file.")
    try:
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, column_major, dtype = read(stream)
    except Exception:  # of numpy alone there are five kinds, by the byte that is wrong: TokenError, SyntaxError, …
        refuse(source, DAMAGED)
    if dtype.hasobject and not pickled:
        refuse(source, "it holds pickled Python objects, which are never loaded; store plain numbers.")
    if dtype.fields is not None or dtype.subdtype is not None or min(shape, default=0) < 0:
        refuse(source, f"it holds {dtype} of shape {shape}, but only plain numbers can be read.")
    return shape, column_major, dtype, stream.tell()
