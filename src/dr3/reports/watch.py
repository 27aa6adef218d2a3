"""`dr3 watch`: the report of a run that is still training, served to this machine alone."""

from __future__ import annotations

import hashlib
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock, Thread, Timer
from typing import Any

from dr3.errors import UserError
from dr3.reports.checkup import Checkup
from dr3.reports.content import Reading, gather
from dr3.reports.page import Live, render, waiting
from dr3.runs import Runs
from dr3.runs.folder import RunFolder

HOST = "127.0.0.1"  # never a public address: a report says where things lie on this machine
MOST_CONNECTIONS = 32  # a browser opens six
SECONDS_PER_REQUEST = 10.0


class Watcher:
    """The page of some run folders as they are now.

    New checkpoints are measured in a thread of their own: a page never waits for them. The spectrum is the last
    layer's alone, because the one over all parameters would take its time from the training.
    """

    def __init__(self, folders: Sequence[Path], *, every: int = 2000) -> None:
        self.folders, self.every = list(folders), every
        self._checkups = [Checkup(gradients=False) for _ in folders]
        self._reasons = [""] * len(self.folders)
        self._lock = Lock()
        self._seen: Any = None
        self._page, self._version = "", ""

    def page(self) -> str:
        """The page, drawn anew only where a file or a measurement is new."""
        self._look()
        return self._page

    def version(self) -> str:
        """What changes when the page does."""
        self._look()
        return self._version

    def measure_next(self) -> bool:
        """Measure one checkpoint that has not been; False where there is none, or its data cannot be had."""
        for number, (folder, checkup) in enumerate(zip(self.folders, self._checkups, strict=True)):
            if not RunFolder(folder).config.exists():
                continue
            try:
                runs = Runs(folder)
                missing = checkup.missing(runs)
                if missing:
                    checkup.measure(runs, missing[0])
                    self._reasons[number] = ""
                    return True
            except UserError as reason:
                self._reasons[number] = f"No verdicts: {reason}"
        return False

    def _look(self) -> None:
        with self._lock:
            seen = [_files(folder) for folder in self.folders], [len(one) for one in self._checkups], self._reasons[:]
            if seen != self._seen:
                self._seen = seen
                self._version = hashlib.sha256(repr(seen).encode()).hexdigest()[:16]
                self._page = self._draw(Live(self._version, self.every))

    def _draw(self, live: Live) -> str:
        for folder in self.folders:
            if not RunFolder(folder).config.exists():
                return waiting(f"{folder} is not a run yet: it has no config.json. This page follows it.", live)
        try:
            readings = [self._read(*one) for one in zip(self.folders, self._checkups, self._reasons, strict=True)]
            return render(gather(readings), live)
        except UserError as reason:
            return waiting(str(reason), live)

    def _read(self, folder: Path, checkup: Checkup, reason: str) -> Reading:
        runs = Runs(folder)
        left = len(checkup.missing(runs))
        note = f"{left} checkpoint{'s are' if left > 1 else ' is'} still to be measured." if left else ""
        return Reading(runs, checkup.health(runs), reason or note or ("" if runs.checkpoints else "No checkpoint yet."))


def serve(watcher: Watcher, port: int) -> ThreadingHTTPServer:
    """A server that is bound to this machine's own address; port 0 is any that is free."""

    class Handler(_Handler):
        pages = watcher

    try:
        return _Server((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        raise UserError(f"Port {port} cannot be used ({error}); choose another with --port, or --port 0.") from None


def measure_in_background(watcher: Watcher, stop: Event, seconds: float = 2.0) -> Thread:
    """Keep measuring new checkpoints until `stop` is set."""

    def work() -> None:
        while not stop.is_set():
            if not watcher.measure_next():
                stop.wait(seconds)

    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and no more of them than `MOST_CONNECTIONS`: others are closed at once."""

    daemon_threads = True

    def __init__(self, *settings: Any) -> None:
        self.free = BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(*settings)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:  # a browser asks again
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who leaves in the middle, or sends nonsense, is no news; a mistake of our own is."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """GET of the page and of its version; every other method is refused by the base class."""

    pages: Watcher
    timeout = SECONDS_PER_REQUEST  # for each piece of a request or of an answer

    def handle(self) -> None:
        """Give the whole request no longer than that, however small the pieces that it comes in."""
        self.limit = Timer(SECONDS_PER_REQUEST, self._hang_up)
        self.limit.daemon = True
        self.limit.start()
        try:
            super().handle()
        finally:
            self.limit.cancel()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        self.limit.cancel()  # it has come; drawing the page may take its time
        port = self.connection.getsockname()[1]
        # A foreign page whose name was rebound to this address would send its own name here.
        if self.headers.get("Host") not in {f"{name}:{port}" for name in (HOST, "localhost")}:
            self._answer(HTTPStatus.FORBIDDEN, "This server answers to 127.0.0.1 and localhost only.\n", "text/plain")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, self.pages.page(), "text/html")
        elif self.path == "/version":
            self._answer(HTTPStatus.OK, self.pages.version(), "text/plain")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "There is only the report, at /.\n", "text/plain")

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        with suppress(ConnectionError):  # a browser may leave before it is answered
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A line for every look would bury everything else."""


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Everything that a page is made of, by size and time."""
    run = RunFolder(folder)
    files = [
        run.config,
        run.status,
        run.metrics,
        run.evaluations,
        run.environment,
        *run.checkpoints.folder.glob("*.npz"),
    ]
    return sorted((file.name, stat.st_size, stat.st_mtime_ns) for file in files if (stat := _stat(file)) is not None)


def _stat(file: Path) -> Any:
    try:
        return file.stat()
    except FileNotFoundError:
        return None
