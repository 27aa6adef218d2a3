"""Layers by checkpoints, as the paper's figure of re-initialisation shows them (appendix A.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dr3.diagnostics.reinitialisation import LayerTest
from dr3.errors import UserError
from dr3.reports import style


def draw_layers(test: LayerTest, titles: Sequence[str], path: Path, *, caption: str = "", columns: int = 1) -> None:
    """Write one heat map for each member: x checkpoints, y layers, colour the normalised performance from 0 to 1."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("Pictures need matplotlib: pip install 'dr3[plots]'.") from None

    with style.style():
        rows = -(-len(titles) // columns)
        size = (7.0 if columns == 1 else 1.0 + 3.6 * columns, 0.9 + rows * (0.7 + 0.3 * len(test.layers)))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        for axis in axes.flat[len(titles) :]:
            axis.set_axis_off()
        for axis, title, shares in zip(axes.flat, titles, test.normalised, strict=False):
            image = axis.imshow(np.clip(shares, 0, 1), vmin=0, vmax=1, cmap="viridis", aspect="auto")
            axis.set_title(title)
            axis.set_yticks(range(len(test.layers)), test.layers)
            shown = np.unique(np.linspace(0, len(test.steps) - 1, min(6, len(test.steps))).astype(int))
            axis.set_xticks(shown, [f"{test.steps[t]:,}" for t in shown])
            axis.grid(visible=False)
        for axis in axes[-1]:
            axis.set_xlabel("checkpoint")
        bar = figure.colorbar(image, ax=axes, label=f"return after {test.test} / return")
        ticks = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
        bar.set_ticks(ticks, labels=[f"{tick:.1f}" if tick < 1 else "1 or more" for tick in ticks])
        if caption:
            style.caption(figure, caption)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
