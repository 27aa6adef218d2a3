"""What a worker does with one task, on whatever machine it runs."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dr3.errors import UserError
from dr3.files import open_to_append
from dr3.runs.folder import RunFolder
from dr3.sweeps.task import RECORD, read_record
from dr3.sweeps.timing import timed

LOG = "log.txt"
PATIENCE = 60.0  # seconds to wait for another process to let go of the folder


def work(folder: Path, *, save_every: float | None, where: str = "") -> str | None:
    """Carry out the task whose record lies in `folder`: None, or what went wrong in a sentence. The log tells more.

    Only what is wrong with the task itself is caught: that would go wrong again. A worker that dies is its engine's
    business, and a signal to stop passes through.
    """
    if not (folder / RECORD).exists():
        return f"{platform.node()} does not see {folder}; choose an out folder on storage that all nodes see."
    with _printing_to(folder / LOG):
        print(f"--- process {os.getpid()} on {platform.node()} {where}".rstrip(), flush=True)
        try:
            with RunFolder(folder).locked(PATIENCE):
                pass  # a worker whose node was lost may take a moment to die
            with timed(folder):
                read_record(folder).run(folder, save_every=save_every)
        except UserError as mistake:
            print(mistake, flush=True)
            return str(mistake)
        except Exception as error:
            traceback.print_exc()
            return f"{type(error).__name__}: {error}"
    return None


def python_path() -> str:
    """PYTHONPATH for a worker: where these very sources are, unless they are installed, and what is on this one's.

    Written out in full, because a worker may begin in another folder.
    """
    sources = Path(__file__).parents[2]
    own = [] if sources == Path(sysconfig.get_path("purelib")) else [str(sources)]
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([*own, *(os.path.abspath(entry) for entry in given.split(os.pathsep) if given)])


@contextmanager
def _printing_to(log: Path) -> Generator[None]:
    """Send all that this process prints, also from compiled libraries, to the end of a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with open_to_append(log) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, former in enumerate(kept, start=1):
            os.dup2(former, number)
            os.close(former)
