from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from dr3.cli import invoke
from dr3.diagnostics import Health, Measurements, Thresholds, health
from dr3.diagnostics.health import MemberHealth, Verdict
from dr3.errors import UserError
from dr3.reports.content import Reading
from dr3.reports.groups import group
from dr3.reports.report import write_report
from dr3.reports.verdicts import headline, verdicts
from dr3.runs import Runs


class Page(HTMLParser):
    """Every element with its attributes, and the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._inside = "", [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data + " "


@pytest.fixture(scope="module")
def page(small_run, tmp_path_factory):
    return Page(Runs(small_run).report(tmp_path_factory.mktemp("report") / "report.html").read_text())


def test_a_note_leaves_a_critic_healthy(small_run):
    runs = Runs(small_run)
    note = Verdict("unstable spectrum", 10, "An eigenvalue is where it should not be.", {}, "")
    members = [MemberHealth(str(number), [], [note], np.zeros(1, bool)) for number in range(len(runs))]
    found = Health(members, Measurements(np.array([10]), {}, 4), Thresholds())
    text = Page(str(verdicts([Reading(runs, found)], group([runs])))).text
    assert f"All {len(runs)} critics look healthy." in text
    assert "no fall in returns and no impossible Q-values show" in text
    assert "Note (unstable spectrum, seeds 0, 1), no sign of ill health by itself: An eigenvalue" in text


def test_it_says_what_the_run_says(page, small_run):
    runs = Runs(small_run)
    found = health(runs)
    assert headline(found.members) in page.text
    for member in found.members:
        for verdict in member.verdicts:
            assert verdict.name in page.text
    assert page.text.index("Health") < page.text.index("Curves") < page.text.index("Results")
    values = json.loads(page.scripts[0])
    returns = runs.evaluations["evaluation/return"]
    assert values["return"][0]["middle"][-1] == pytest.approx(returns[:2, -1].mean(), rel=1e-5)
    assert values["dot product"][1]["high"] == pytest.approx(runs.metrics["features/dot_product"][2:].max(0), rel=1e-5)
    assert {"mean Q", "srank", "cosine", "distance from instability", "largest stable step"} <= set(values)
    assert "Gains are over DQN" in page.text
    assert f"{returns[2:, -1].mean():.4g}".replace("-", "−") in page.text
    assert runs.config.data.fingerprint in page.text
    assert "jaxlib" in page.text


def test_it_asks_for_nothing(page):
    """No address in it but that of SVG's own name; what a browser does is in test_browser.py."""
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "base")
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
        assert not any(key.startswith("on") for key in attributes)
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_same_run_is_the_same_file(small_run, tmp_path):
    first, second = (write_report(Runs(small_run), tmp_path / name, gradients=False) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_nothing_from_a_file_becomes_markup(copied_run, tmp_path):
    evil = "</script></title></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    config = json.loads((copied_run / "config.json").read_text())
    config["data"].update(name=evil, source=None)
    (copied_run / "config.json").write_text(json.dumps(config))
    (copied_run / "environment.json").write_text(json.dumps({evil: [evil]}))
    folder = copied_run.rename(tmp_path / "<script>alert(2)<")
    calm = write_report(Runs(folder), gradients=False)
    text = calm.read_text()
    assert calm == folder / "report.html"
    page = Page(text)
    assert [tag for tag, _ in page.elements].count("script") == 2  # the values and ours
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert evil in page.text
    # Without its data there are no verdicts, and the reason stands in their place.
    assert "does not say where its data came from" in page.text


def test_several_runs(small_run, copied_run, tmp_path, capsys):
    config = json.loads((copied_run / "config.json").read_text())
    config["data"].update(name="elsewhere")
    (copied_run / "config.json").write_text(json.dumps(config))
    out = tmp_path / "both.html"
    assert invoke(["report", str(small_run), str(copied_run), str(small_run), "--out", str(out), "--no-gradients"]) == 0
    assert f"The report is {out}" in capsys.readouterr().out
    page = Page(out.read_text())
    names = [line["name"] for line in json.loads(page.scripts[0])["return"]]
    assert len(names) == 4  # the run that was named twice is in it once
    assert names[2].endswith("on elsewhere")
    with pytest.raises(UserError, match="--out FILE"):
        write_report([Runs(small_run), Runs(copied_run)])


def test_a_run_without_measurements_has_a_report(copied_run):
    shutil.rmtree(copied_run / "state")  # it would notice that lines are gone
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        (copied_run / name).write_text("")
    for file in (copied_run / "checkpoints").iterdir():
        file.unlink()
    text = Page(write_report(Runs(copied_run)).read_text()).text
    assert "has no checkpoint yet" in text
    assert "Nothing has been measured yet." in text


def test_mistakes(tmp_path, capsys):
    assert invoke(["report", str(tmp_path / "nowhere")]) == 2
    assert "is not a run" in capsys.readouterr().err
    assert invoke(["report"]) == 2
    assert "needs at least one run folder" in capsys.readouterr().err
