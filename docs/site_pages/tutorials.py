"""The tutorials: Python files with `# %%` cells, executed into pages with what they printed and drew.

    python docs/site_pages/tutorials.py [NAME …]      execute (`make tutorials`)

The site shows an executed page where there is one that belongs to the file as it is, and else the code without results.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jupytext

from site_pages.commands import COLOURS
from site_pages.places import DOCS, GENERATED, REPOSITORY, relink, write

SOURCES = DOCS / "tutorials"
PAGES = GENERATED / "tutorials"
EXECUTED = REPOSITORY / "build" / "tutorials"


def names() -> list[str]:
    """The tutorials in the order of their numbers."""
    return sorted(path.stem for path in SOURCES.glob("*.py"))


def write_tutorial_pages() -> None:
    """For the site: each tutorial as a page in `docs/generated/tutorials`."""
    for name in names():
        source = SOURCES / f"{name}.py"
        executed = EXECUTED / _stamp(source)
        page = (executed / "page.md").read_text(encoding="utf-8") if executed.is_dir() else _page(source, None)
        write(PAGES / f"{name}.md", relink(page, source, PAGES / f"{name}.md"))
        for picture in executed.glob("*.png"):
            shutil.copyfile(picture, PAGES / picture.name)


def execute(name: str) -> None:
    """Run a tutorial in an empty folder, and keep its page and pictures."""
    source = SOURCES / f"{name}.py"
    executed = EXECUTED / _stamp(source)
    if executed.is_dir():
        print(f"{name}: executed before, and unchanged since")
        return
    from dr3.reports.style import style

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        work = Path(scratch) / "work"
        work.mkdir()
        with contextlib.chdir(work), style():  # the house style, as all pictures have it
            page = _page(source, made)
        (made / "page.md").write_text(page, encoding="utf-8")
        EXECUTED.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, executed)
    print(f"{name}: {time.monotonic() - began:.0f} s")


def _stamp(source: Path) -> str:
    return f"{source.stem}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"


def _page(source: Path, pictures: Path | None) -> str:
    """The tutorial as Markdown; with a folder for pictures, its cells are executed."""
    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    scope: dict = {"__name__": "__main__"}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if pictures is not None:
            parts += _results(cell.source, scope, source, pictures, len(parts))
    parts.append(
        f"---\n\nThis page is the file `docs/tutorials/{source.name}`: run it with Python, or open it as a notebook "
        "with jupytext or an editor that knows `# %%` cells."
    )
    return "\n\n".join(parts) + "\n"


def _results(code: str, scope: dict, source: Path, pictures: Path, number: int) -> list[str]:
    """Execute one cell: what it printed, the value of a last line that is an expression, and what it drew."""
    import matplotlib.pyplot as plt

    tree = ast.parse(code, str(source))
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(source), "exec"), scope)
        value = eval(compile(last, str(source), "eval"), scope) if last else None
        if value is not None:
            print(repr(value))
    said = COLOURS.sub("", printed.getvalue()).rstrip()
    results = [f"```text\n{said}\n```"] if said else []
    for figure in map(plt.figure, plt.get_fignums()):
        picture = f"{source.stem}-{number}-{figure.number}.png"
        figure.savefig(pictures / picture, dpi=150, bbox_inches="tight")
        titles = "; ".join(title for panel in figure.axes if (title := panel.get_title() or panel.get_title("left")))
        results.append(f"![{titles or 'What this cell draws'}]({picture})")
    plt.close("all")
    return results


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ["COLUMNS"] = "100"
    for chosen in sys.argv[1:] or names():
        execute(chosen)
