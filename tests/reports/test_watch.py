from __future__ import annotations

import http.client
import json
import shutil
import socket
from contextlib import suppress

import pytest

from dr3.cli import invoke
from dr3.errors import UserError
from dr3.reports import watch
from dr3.reports.watch import Watcher, serve


def ask(port, path="/", method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_only_this_machine_is_answered_and_only_questions(small_run, served):
    with served(Watcher([small_run])) as port:
        assert ask(port)[0] == 200
        assert ask(port, host=f"localhost:{port}")[0] == 200
        for stranger in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
            status, text = ask(port, host=stranger)
            assert status == 403
            assert "dqn" not in text
        assert ask(port, "/../config.json")[0] == 404
        assert ask(port, method="POST")[0] == 501
    with serve(Watcher([small_run]), 0) as server:
        assert server.server_address[0] == "127.0.0.1"
        with pytest.raises(UserError, match="--port 0"):
            serve(Watcher([small_run]), server.server_address[1])


def test_who_does_not_finish_a_question_is_not_waited_for(small_run, served, monkeypatch):
    monkeypatch.setattr(watch, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(watch._Handler, "timeout", 0.2)
    monkeypatch.setattr(watch, "SECONDS_PER_REQUEST", 0.5)
    with served(Watcher([small_run])) as port:
        idle = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(12)]
        for one in idle:  # those beyond three are closed at once, the others after their time
            assert one.recv(1) == b""
            one.close()
        # A byte now and then keeps no connection alive.
        with socket.create_connection(("127.0.0.1", port), timeout=60) as slow, suppress(ConnectionError):
            for letter in b"GET / HTTP/1.1\r\n" + b"X" * 1000:
                slow.sendall(bytes([letter]))
                slow.settimeout(0.05)
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    break
            else:
                pytest.fail("it was listened to for ever")
        assert ask(port, "/version")[0] == 200


def test_the_page_follows_the_files(small_run, tmp_path):
    folder = tmp_path / "run"
    watcher = Watcher([folder])
    assert "is not a run yet" in watcher.page()
    assert not watcher.measure_next()
    before = watcher.version()

    shutil.copytree(small_run, folder)
    assert watcher.version() != before
    assert "DQN + DR3 0.1" in watcher.page()
    assert watcher.version() == watcher.version()

    before = watcher.version()
    row = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    line = json.dumps(row | {"step": 50, "q/data_mean": 123.0})
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(line[:30])  # as far as training has come with it
    assert "123.0" not in watcher.page()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(line[30:] + "\n")
    assert watcher.version() != before
    assert "123.0" in watcher.page()


def test_a_damaged_file_is_said_and_not_the_end(copied_run):
    whole = (copied_run / "metrics.jsonl").read_text()
    watcher = Watcher([copied_run])
    (copied_run / "metrics.jsonl").write_text("{\n" + whole)
    assert "metrics.jsonl is damaged" in watcher.page()
    (copied_run / "metrics.jsonl").write_text(whole)
    assert "DQN + DR3 0.1" in watcher.page()


def test_checkpoints_are_measured_one_by_one(copied_run):
    watcher = Watcher([copied_run])
    assert "3 checkpoints are still to be measured" in watcher.page()
    assert watcher.measure_next()
    assert "2 checkpoints are still" in watcher.page()
    assert watcher.measure_next()
    assert watcher.measure_next()
    assert not watcher.measure_next()
    assert "still to be measured" not in watcher.page()
    assert "over the last layer alone" in watcher.page()


def test_data_that_cannot_be_had_are_said(copied_run):
    config = json.loads((copied_run / "config.json").read_text())
    config["data"]["source"] = None
    (copied_run / "config.json").write_text(json.dumps(config))
    watcher = Watcher([copied_run])
    assert not watcher.measure_next()
    assert "does not say where its data came from" in watcher.page()


def test_the_head_tells_how_far_training_has_come(copied_run):
    """Its status is written every now and then; its metrics are newer."""
    (copied_run / "status.json").write_text(json.dumps({"step": 0, "finished": False, "diverged": {}}))
    assert "step 40 of 40" in Watcher([copied_run]).page()


def test_mistakes(capsys):
    assert invoke(["watch"]) == 2
    assert "needs a run folder" in capsys.readouterr().err
