from __future__ import annotations

from contextlib import contextmanager
from threading import Thread

import pytest

from dr3.reports.watch import serve


@pytest.fixture
def served():
    """A function that serves a watcher's pages at a free port while its block runs."""

    @contextmanager
    def serving(watcher):
        with serve(watcher, 0) as server:
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield server.server_address[1]
            finally:
                server.shutdown()
                thread.join()

    return serving
