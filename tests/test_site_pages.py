"""What makes the site's pages of docstrings and of pages elsewhere; the site itself is built by `make docs`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def beside_the_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "site_pages"]:
        del sys.modules[name]


def test_docstrings_become_text_that_says_the_same():
    docstrings = import_module("site_pages.docstrings")
    to_rst = docstrings.to_rst

    assert to_rst(["c0 * |phi_| of `DR3`."]) == [r"c0 \* \|phi\_\| of ``DR3``."]
    assert to_rst(["Like this:", "", "    loss = a * b", "", "and so on."]) == [
        "Like this:",
        "",
        "::",
        "",
        "    loss = a * b",
        "",
        "and so on.",
    ]
    assert to_rst(["Made up:", "- `a`: one,", "  still one", "- b: two", "All."]) == [
        "Made up:",
        "",
        "- ``a``: one,",
        "  still one",
        "- b: two",
        "",
        "All.",
    ]
    section = ["Args:", "    steps: How many."]
    assert to_rst(section) == section


def test_links_hold_from_where_a_page_is_placed():
    places = import_module("site_pages.places")
    GENERATED, REPOSITORY, relink = places.GENERATED, places.REPOSITORY, places.relink

    origin, placed = REPOSITORY / "CONTRIBUTING.md", GENERATED / "contributing.md"
    assert relink("[a](docs/data.md#x)", origin, placed) == "[a](../data.md#x)"
    assert relink("[log](CHANGELOG.md)", origin, placed) == "[log](changelog.md)"
    assert relink("[examples/plugin](examples/plugin)", origin, placed) == "`examples/plugin`"
    assert relink("[it](src/dr3/backup.py)", origin, placed) == "it (`src/dr3/backup.py`)"
    assert relink("[web](https://semver.org)", origin, placed) == "[web](https://semver.org)"
    assert relink("[gone](nowhere.md)", origin, placed) == "[gone](nowhere.md)"  # the build says so


def test_links_that_lead_nowhere_are_named(tmp_path):
    links = import_module("site_pages.links")
    faults = links.faults

    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">x</a><a href="#no">y</a><a href="https://semver.org">z</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"><img src="gone.png"><script src="https://cdn.test/x.js"></script>')
    assert faults(tmp_path) == [
        "a.html links to #no, which has no such anchor.",
        "b.html links to gone.png, which is not there.",
        "b.html loads https://cdn.test/x.js from the network.",
    ]
