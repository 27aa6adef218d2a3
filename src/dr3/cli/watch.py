"""`dr3 watch RUN`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dr3.cli.parsing import parse
from dr3.errors import UserError


@dataclass(frozen=True)
class Watch:
    """The report of a run while it trains, at an address that only this machine can reach. Ctrl-C ends it.

    examples:

    dr3 watch runs/first

    dr3 watch runs/cql runs/cql-dr3 --port 0
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The run folders; one that is not there yet is waited for."""

    port: int = 8321
    """Where the page is served; 0 is any free port."""


def main(arguments: list[str]) -> int:
    options = parse(Watch, arguments, prog="dr3 watch", description=Watch.__doc__ or "")
    if not options.runs:
        raise UserError("dr3 watch needs a run folder: dr3 watch runs/first.")

    from threading import Event

    from dr3.reports.watch import HOST, Watcher, measure_in_background, serve

    watcher, stop = Watcher(options.runs), Event()
    with serve(watcher, options.port) as server:
        print(f"Watching {', '.join(map(str, options.runs))} at http://{HOST}:{server.server_address[1]}/", flush=True)
        thread = measure_in_background(watcher, stop)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            thread.join()  # a checkpoint that is being measured ends first: JAX does not like to be left in the middle
    return 0
