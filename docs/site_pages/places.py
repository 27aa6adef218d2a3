"""Where things are: in the repository, and on the site."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
REPOSITORY = DOCS.parent
GENERATED = DOCS / "generated"

OUTSIDE = {
    REPOSITORY / "CHANGELOG.md": GENERATED / "changelog.md",
    REPOSITORY / "CONTRIBUTING.md": GENERATED / "contributing.md",
    REPOSITORY / "SECURITY.md": GENERATED / "security.md",
    REPOSITORY / "benchmarks" / "README.md": GENERATED / "speed.md",
    REPOSITORY / "README.md": DOCS / "index.md",
}
"""Pages that live beside what they are about, and where the site has them."""

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def relink(text: str, origin: Path, placed: Path) -> str:
    """The text with links that hold on the site: from `placed`, where they were written for `origin`.

    What is in the repository and not on the site (sources, examples) becomes its path, to be read and not followed.
    """

    def mended(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        path = Path(os.path.normpath(origin.parent / target))
        path = OUTSIDE.get(path, path)
        if path.is_relative_to(DOCS):
            return f"[{label}]({os.path.relpath(path, placed.parent)}{anchor})"
        if not path.exists():
            return match[0]  # the build says that it leads nowhere
        name = str(path.relative_to(REPOSITORY))
        return f"`{name}`" if label.strip("`") == name else f"{label} (`{name}`)"

    return _LINK.sub(mended, text)


_written: set[Path] = set()


def write(path: Path, text: str) -> None:
    """Write a generated page, unless it is there already: what is untouched is not built again."""
    _written.add(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def remove_old_pages() -> None:
    """Pages of commands and tutorials that are no more."""
    for path in set(GENERATED.rglob("*.md")) - _written:
        path.unlink()
