from __future__ import annotations

import signal
from threading import Thread

import pytest

from dr3.runs.interruption import Interruption, watched


def watched_elsewhere() -> Interruption:
    """What another thread gets."""
    found = []

    def watch() -> None:
        with watched() as asked:
            found.append(asked)

    thread = Thread(target=watch)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_threads_are_asked_what_the_main_thread_heard(number):
    with watched() as asked:
        assert watched_elsewhere() is asked
        signal.raise_signal(number)
        assert watched_elsewhere().signal == number


def test_the_innermost_is_the_one_that_listens():
    with watched() as outer:
        with watched() as inner:
            assert watched_elsewhere() is inner
        assert watched_elsewhere() is outer


def test_where_the_main_thread_does_not_listen_nobody_is_asked():
    with watched():
        signal.raise_signal(signal.SIGINT)
    assert watched_elsewhere().signal is None
