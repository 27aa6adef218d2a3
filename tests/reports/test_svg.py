from __future__ import annotations

import re

import numpy as np

from dr3.reports.curves import Panel
from dr3.reports.svg import BOTTOM, LEFT, MOST_POINTS, RIGHT, TOP, Axis, axes_of, chart, summary, thinned


def panel(*members, log=False, steps=(0, 10, 20)):
    return Panel("q", "words", {"one": (np.array(steps), np.array(members, float))}, log=log)


def test_places_by_hand():
    assert Axis(0, 10, 100, 200).place(np.array([0, 5, 10])).tolist() == [100, 150, 200]
    # Decades are equally far apart, and zero lies on the edge.
    assert Axis(1, 100, 200, 0, log=True).place(np.array([1, 10, 100, 0])).tolist() == [200, 100, 0, 200]


def test_ticks_are_round():
    assert Axis(-0.3, 9.7, 0, 1).ticks() == [0, 5]
    assert Axis(0, 2000, 0, 1).ticks() == [0, 500, 1000, 1500, 2000]
    assert Axis(-0.15, 0.01, 0, 1).ticks() == [-0.15, -0.1, -0.05, 0]
    assert Axis(0.9, 1100, 0, 1, log=True).ticks() == [1, 10, 100, 1000]
    assert Axis(1.5, 30, 0, 1, log=True).ticks() == [2, 5, 10, 20]
    assert Axis(2.1, 4.9, 0, 1, log=True).ticks() == [3, 4]  # less than a decade


def test_axes_hold_every_value():
    x, y = axes_of(panel([1, 2, 3], [0, np.nan, 7]), log=False)
    assert (x.low, x.high) == (0, 20)
    assert y.low < 0
    assert y.high > 7
    level = axes_of(panel([3, 3, 3]), log=False)[1]
    assert level.low < 3 < level.high
    zero = axes_of(panel([0, 1, 10]), log=True)[1]
    assert 0 < zero.low < 0.2


def test_the_name_of_a_level_lies_where_no_curve_is():
    def place_of_the_name(*values, level):
        drawn = Panel("q", "words", {"one": (np.arange(3), np.array([values], float))}, reference=("bound", level))
        y = axes_of(drawn, log=False)[1]
        (text,) = re.findall(r'class="name" x="[^"]+" y="([^"]+)"', chart(drawn, log=False, title="t"))
        assert TOP < float(text) < BOTTOM
        return float(text) - float(y.place(np.array(level)))

    assert place_of_the_name(-1, -2, -0.5, level=0) < 0  # above the line: all curves are below it
    assert place_of_the_name(0.001, -2, -0.5, level=0) < 0
    assert place_of_the_name(1, 2, 0.5, level=0) > 0


def test_the_summary_is_over_members_that_have_a_value():
    middle, low, high = summary(np.array([[1, 5, np.nan, np.inf], [3, np.nan, np.nan, 2], [8, 7, np.nan, 4]]))
    np.testing.assert_equal(middle, [3, 6, np.nan, 3])
    np.testing.assert_equal(low, [1, 5, np.nan, 2])
    np.testing.assert_equal(high, [8, 7, np.nan, 4])


def test_a_line_runs_from_corner_to_corner_and_breaks_where_nothing_is():
    drawn = chart(panel([0, 1, 2]), log=False, title="t")
    (line,) = re.findall(r'class="line" d="M([^"]+)"', drawn)
    points = np.array([[float(number) for number in point.split(",")] for point in line.split("L")])
    assert points[0, 0] == LEFT
    assert points[-1, 0] == RIGHT
    assert BOTTOM > points[0, 1] > points[1, 1] > points[2, 1] > TOP
    assert "band" not in drawn  # of a single seed
    broken = chart(panel([0, np.nan, 2], [0, np.nan, 4]), log=False, title="t")
    assert re.findall(r'class="line" d="([^"]+)"', broken)[0].count("M") == 2
    assert broken.count('class="seed"') == 2
    assert broken.count('class="band"') == 1


def test_a_name_cannot_become_markup():
    drawn = chart(panel([0, 1, 2]), log=False, title="</title><script>")
    assert "<script" not in drawn


def test_long_curves_are_thinned_and_keep_their_ends():
    kept = thinned(10_000)
    assert len(kept) == MOST_POINTS
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert thinned(3).tolist() == [0, 1, 2]
