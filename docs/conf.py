"""The site, by Sphinx: `make docs`. Pages are Markdown; what is generated lies in `docs/generated`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import dr3
from site_pages import docstrings, mathml
from site_pages.commands import write_command_pages
from site_pages.places import DOCS, GENERATED, OUTSIDE, relink, remove_old_pages, write
from site_pages.tutorials import write_tutorial_pages

project = "dr3"
author = "The dr3 developers"
copyright = author
version = release = dr3.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["evidence", "build"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_mock_imports = ["torch", "d3rlpy", "flax"]
smartquotes = False  # φ' and s' are no quotations
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"dr3 {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # MathJax would be fetched from the network
html_show_copyright = False


def write_pages(app) -> None:
    """What is not written by hand: pages from elsewhere in the repository, the commands' help, the tutorials."""
    for origin, placed in OUTSIDE.items():
        if placed.is_relative_to(GENERATED):
            write(placed, relink(origin.read_text(encoding="utf-8"), origin, placed))
    write_command_pages()
    write_tutorial_pages()
    remove_old_pages()


def relink_page(app, docname: str, source: list[str]) -> None:
    path = DOCS / f"{docname}.md"
    if not path.is_relative_to(GENERATED):
        source[0] = relink(source[0], path, path)


def setup(app) -> None:
    mathml.setup(app)
    app.connect("builder-inited", write_pages)
    app.connect("source-read", relink_page)
    app.connect("autodoc-process-docstring", docstrings.process, priority=100)
