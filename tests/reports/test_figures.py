from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dr3.reports.figures import (
    efficiency_plot,
    improvement_plot,
    interval_plot,
    profile_plot,
    statistics_figures,
)
from dr3.reports.style import PALETTE, apart, caption, colours, save
from dr3.stats import Band, CheckpointResult, Comparison, Improvement, Interval, ScoreTable, summarise


def words(figure) -> str:
    page = io.StringIO()
    save(figure, page)
    return page.getvalue()


def band(*values: float) -> Band:
    line = np.array(values)
    return Band(np.arange(1.0, 1.0 + line.size) * 1e6, line, line - 0.1, line + 0.1)


def test_labels_are_moved_apart_and_keep_their_order() -> None:
    assert apart([0.0, 10.0], 1.0) == [0.0, 10.0]
    assert apart([5.0, 5.0], 2.0) == [4.0, 6.0]
    moved = apart([3.0, 1.0, 1.1, 1.05], 1.0)
    assert np.all(np.diff(np.sort(moved)) >= 1.0 - 1e-12)
    assert list(np.argsort(moved)) == [1, 3, 2, 0]


def test_colours_follow_the_order() -> None:
    assert colours(["a", "b"]) == {"a": PALETTE[0], "b": PALETTE[1]}
    assert len(set(PALETTE)) == len(PALETTE)


def test_a_caption_is_not_cut_at_the_sides() -> None:
    figure = Figure(figsize=(4.0, 3.0), layout="constrained")
    caption(figure, "thick: median of 3 seeds, thin: each seed; network of 128 x 128 units, 256 transitions")
    figure.draw_without_rendering()
    (written,) = figure.texts
    box = written.get_window_extent()
    assert 0 < box.x0 < box.x1 < figure.bbox.width


def test_intervals_name_algorithms_and_statistics() -> None:
    values = {"IQM": Interval(2, 1, 3), "optimality gap": Interval(5, 4, 6)}
    figure = interval_plot({"CQL": values, "CQL+DR3": values})
    svg = words(figure)
    for text in ("CQL+DR3", "IQM", "optimality gap", "lower is better"):
        assert text in svg
    first = figure.axes[0]
    low, high = first.get_xlim()
    assert low < 1 < 3 < high  # the bar is not cut off
    assert [bar.get_x() for bar in first.patches if isinstance(bar, Rectangle)] == [1, 1]


def test_lines_carry_their_names() -> None:
    bands = {"CQL": band(0.9, 0.5, 0.1), "CQL+DR3": band(1.0, 0.6, 0.2)}
    for figure in (profile_plot(bands), efficiency_plot(bands)):
        assert "CQL+DR3" in words(figure)
        np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), [1.0, 0.6, 0.2])
    assert "2M" in words(efficiency_plot(bands))
    assert words(efficiency_plot(bands)) == words(efficiency_plot(bands))  # the same picture is the same file


def test_bars_say_the_verdict() -> None:
    items = [
        Comparison("CQL+DR3", "CQL", Improvement(Interval(0.83, 0.7, 0.96), ()), Interval(1, 0, 2)),
        Comparison("REM+DR3", "REM", Improvement(Interval(0.44, 0.0, 1.0), ()), Interval(1, 0, 2)),
    ]
    svg = words(improvement_plot(items))
    for text in ("CQL+DR3 over CQL", "0.83  significant and meaningful", "0.44  not significant", "chance"):
        assert text in svg


def test_all_pictures_of_a_summary() -> None:
    rows = [
        CheckpointResult(name, "x", seed, step, (1.0,), score=float(seed + step))
        for name in ("A", "B")
        for seed in range(2)
        for step in (1, 2)
    ]
    table, rng = ScoreTable(rows), np.random.default_rng(0)
    pictures = statistics_figures(table, summarise(table, rng, replicates=20), rng)
    assert list(pictures) == [
        *(f"final-{kind}" for kind in ("intervals", "profile", "improvement")),
        *(f"average-{kind}" for kind in ("intervals", "profile", "improvement")),
        "efficiency",
    ]
