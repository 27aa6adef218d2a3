"""Each tutorial is a plain Python program that runs; the site's pages are made of the same files."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.py"))
NEEDS = {
    "2_peaks_and_falls": ("onnx", "onnxruntime"),
    "3_table_of_decisions": ("pyarrow",),
    "4_pytorch_and_d3rlpy": ("torch", "d3rlpy"),
}


def test_there_are_six():
    assert [path.stem[0] for path in TUTORIALS] == list("123456")


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """An empty folder, and what a tutorial registers is known to it alone."""
    from dr3 import plugins, registry

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(registry, "_added", {kind: {} for kind in registry._added})
    monkeypatch.setattr(plugins, "_remembered", {})
    monkeypatch.setattr(plugins, "_loaded", {})
    yield
    sys.modules.pop("my_methods", None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # d3rlpy imports gym, which warns about itself
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_it_runs(tutorial, alone):
    for module in ("matplotlib", *NEEDS.get(tutorial.stem, ())):
        pytest.importorskip(module, exc_type=ImportError)
    runpy.run_path(str(tutorial), run_name="__main__")
