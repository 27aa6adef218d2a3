"""Equations as MathML, which browsers show by themselves: no script, no network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Called by `docs/conf.py`: the name to be put into `html_math_renderer` is `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))


def _inline(writer, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(writer, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="equation">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode
