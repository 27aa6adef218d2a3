"""The report in a real browser: Chromium, headless, from disk and from `dr3 watch`."""

from __future__ import annotations

import json
import shutil

import pytest

from dr3.reports.report import write_report
from dr3.reports.watch import Watcher
from dr3.runs import Runs

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser test needs playwright")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("the browser test needs Chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def file(small_run, tmp_path_factory):
    return write_report(Runs(small_run), tmp_path_factory.mktemp("browser") / "report.html").as_uri()


@pytest.fixture
def visit(browser):
    """Open an address; at the end nothing may have been logged, thrown, asked in a dialog or fetched from elsewhere."""
    opened, complaints = [], []

    def go(address, **context):
        opened.append(browser.new_context(**context))
        page = opened[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        home = address if address.startswith("file:") else address.rstrip("/")
        page.on("request", lambda r: None if r.url.startswith((home, "data:")) else complaints.append(r.url))
        page.goto(address)
        return page

    yield go
    for context in opened:
        context.close()
    assert complaints == []


def hover(page, name, where=0.999):
    """The readout of a panel at a share of the width of its axis."""
    svg = page.locator(f'figure[data-panel="{name}"] svg:visible')
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    left, right = (float(part) / 440 for part in svg.get_attribute("data-x").split()[2:])
    page.mouse.move(box["x"] + box["width"] * (left + where * (right - left)), box["y"] + box["height"] / 2)
    return page.locator(f'figure[data-panel="{name}"] .readout').inner_text()


def test_hover_says_the_values(visit, file, small_run):
    page = visit(file, viewport={"width": 1180, "height": 900})
    runs = Runs(small_run)
    text = hover(page, "srank")
    assert "step 40" in text
    assert f"{sum(runs.metrics['features/srank'][2:, -1]) / 2:g}" in text
    assert "step 20" in hover(page, "return", 0.45)
    page.locator('figure[data-panel="srank"] svg').focus()
    page.keyboard.press("ArrowLeft")
    assert "step" in page.locator(".readout").inner_text()


def test_the_legend_hides_and_shows(visit, file):
    page = visit(file)
    lines = page.locator('figure[data-panel="mean Q"] .line')
    assert lines.nth(0).is_visible()
    page.get_by_text("DQN · 2 seeds").click()
    assert not lines.nth(0).is_visible()
    assert lines.nth(1).is_visible()
    assert "DQN + DR3 0.1" in hover(page, "srank")
    assert page.locator(".readout tr").count() == 1
    seeds = page.locator('figure[data-panel="mean Q"] .g1 .seed')
    assert not seeds.nth(0).is_visible()
    page.get_by_text("single seeds").click()
    assert seeds.nth(0).is_visible()
    dots = page.locator('figure[data-panel="dot product"]')
    assert dots.locator("svg:visible").get_attribute("data-log") is not None
    dots.get_by_text("log axis").click()
    assert dots.locator("svg:visible").get_attribute("data-log") is None


def test_light_dark_and_a_phone(visit, file, tmp_path):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = (visit(file, color_scheme=scheme) for scheme in ("light", "dark"))
    assert sum(map(int, paper(light)[4:-1].split(","))) > 700
    assert sum(map(int, paper(dark)[4:-1].split(","))) < 100
    phone = visit(file, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    hover(phone, "dot product")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    for name, page in {"light": light, "dark": dark, "phone": phone}.items():
        assert page.screenshot(path=tmp_path / f"{name}.png", full_page=True).startswith(b"\x89PNG")


def test_without_a_script_there_are_pictures_and_verdicts(visit, file):
    page = visit(file, java_script_enabled=False)
    assert page.locator("#verdicts .headline").is_visible()
    assert page.locator("#verdicts .card").count() == 2
    for line in page.locator('figure[data-panel="mean Q"] .line').all():
        assert line.is_visible()
    page.get_by_text("DQN · 2 seeds").click()  # by style alone
    assert not page.locator('figure[data-panel="mean Q"] .g0 .line').is_visible()


def test_nothing_from_a_file_runs(visit, copied_run):
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    config = json.loads((copied_run / "config.json").read_text())
    config["data"].update(name=evil, source=evil)
    (copied_run / "config.json").write_text(json.dumps(config))
    page = visit(write_report(Runs(copied_run), gradients=False).as_uri())
    assert evil in page.locator("h1").inner_text()
    hover(page, "srank")


def test_watching_follows_the_run_and_keeps_what_was_chosen(visit, served, small_run, tmp_path):
    folder = tmp_path / "run"
    with served(Watcher([folder], every=20)) as port:
        page = visit(f"http://127.0.0.1:{port}/", viewport={"width": 1000, "height": 500})
        assert "is not a run yet" in page.locator("body").inner_text()
        shutil.copytree(small_run, tmp_path / "partial")
        (tmp_path / "partial").rename(folder)
        page.locator("h1", has_text="DQN on").wait_for()
        page.get_by_text("DQN + DR3 0.1 · 2 seeds").click()
        page.get_by_text("config.json").click()
        page.evaluate("window.scrollTo(0, 300)")
        row = json.loads((folder / "metrics.jsonl").read_text().splitlines()[0])
        with (folder / "metrics.jsonl").open("a") as stream:
            stream.write(json.dumps(row | {"step": 80, "features/srank": 77.0}) + "\n")
        (folder / "status.json").write_text(json.dumps({"step": 80, "finished": False, "diverged": {}}))
        page.get_by_text("step 80 of 40").wait_for()
        assert "step 80" in hover(page, "srank")
        assert not page.locator("#show-1").is_checked()
        assert page.locator("#config-0").get_attribute("open") is not None
        assert page.evaluate("window.scrollY") > 0
        page.goto("about:blank")  # it stops asking before the server goes
