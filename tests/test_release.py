"""A release is made of a tag that is named after its version; building and trying it out is `make release-check`."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

import dr3

ROOT = Path(__file__).parents[1]
RELEASE = runpy.run_path(str(ROOT / "tools" / "release.py"))


def sources(folder: Path, changes: str) -> Path:
    (folder / "src/dr3").mkdir(parents=True)
    (folder / "src/dr3/__init__.py").write_text('"""dr3"""\n\n__version__ = "1.2.0"\n')
    (folder / "CHANGELOG.md").write_text(changes)
    return folder


def test_the_version_is_in_one_place():
    assert RELEASE["version_of"](ROOT) == dr3.__version__


@pytest.mark.parametrize(
    ("tag", "changes", "says"),
    [
        ("v1.1.0", "## 1.2.0\n", "it would have to be v1.2.0"),
        ("v1.2.0", "## 1.1.0\n", "has no heading for 1.2.0"),
        ("v1.2.0", "## 1.2.0, not released yet\n", "still says"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(tmp_path, tag, changes, says):
    folder = sources(tmp_path, changes)
    with pytest.raises(SystemExit, match=says):
        RELEASE["check_tag"](tag, "1.2.0", folder)
    RELEASE["check_tag"]("v1.2.0", "1.2.0", sources(tmp_path / "good", "## 1.2.0\n"))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_what_is_built_is_the_tag_alone(tmp_path, monkeypatch):
    folder = sources(tmp_path / "repository", "## 1.2.0\n")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"], ["tag", "v1.2.0"]):
        subprocess.run([*git, *words], check=True)
    (folder / "lies about").write_text("")
    checked_out = RELEASE["checked_out"]
    monkeypatch.setitem(checked_out.__globals__, "ROOT", folder)
    made = checked_out("v1.2.0", tmp_path / "sources")
    assert sorted(path.name for path in made.iterdir()) == ["CHANGELOG.md", "src"]
    with pytest.raises(SystemExit, match="exit code"):
        checked_out("v9", tmp_path / "none")
