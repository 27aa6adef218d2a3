"""Layers by checkpoints, as the paper's figure of re-initialisation shows them (appendix A.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dr3.diagnostics.reinitialisation import LayerTest
from dr3.errors import UserError
from dr3.reports.style import style


def draw_layers(test: LayerTest, titles: Sequence[str], path: Path, *, caption: str = "") -> None:
    """Write one heat map for each member: x checkpoints, y layers, colour the normalised performance from 0 to 1."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("Pictures need matplotlib: pip install 'dr3[plots]'.") from None

    with style():
        height = 0.9 + len(titles) * (0.7 + 0.3 * len(test.layers))
        figure = Figure(figsize=(7.0, height), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(titles), 1))
        for axis, title, shares in zip(axes, titles, test.normalised, strict=True):
            image = axis.imshow(np.clip(shares, 0, 1), vmin=0, vmax=1, cmap="viridis", aspect="auto")
            axis.set_title(title)
            axis.set_yticks(range(len(test.layers)), test.layers)
            shown = np.unique(np.linspace(0, len(test.steps) - 1, min(6, len(test.steps))).astype(int))
            axis.set_xticks(shown, [f"{test.steps[t]:,}" for t in shown])
            axis.grid(visible=False)
        axes[-1].set_xlabel("checkpoint")
        figure.colorbar(image, ax=list(axes), label=f"return after {test.test} / return")
        if caption:
            figure.supxlabel(caption, fontsize=8, color="#555555")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
