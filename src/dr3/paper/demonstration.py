"""What `dr3 demo` shows: the paper's gridworld evidence, and DR3 on the data of a game."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dr3.paper import gridworlds
from dr3.paper.findings import Finding, make
from dr3.paper.gridworlds import Size
from dr3.paper.minatar_sample import breakout_curves, judge_breakout


@dataclass(frozen=True)
class Demonstration:
    """How large it is."""

    gridworlds: Size
    breakout_updates: int


QUICK = Demonstration(gridworlds.QUICK, breakout_updates=5_000)
FULL = Demonstration(gridworlds.FULL, breakout_updates=15_000)
SMOKE = Demonstration(gridworlds.SMOKE, breakout_updates=20)


def findings(sizes: Demonstration, out: Path, finished: Callable[[int, int], None]) -> list[Finding]:
    """Train everything, one run to a core, and judge it; see `findings.make`."""
    size = sizes.gridworlds
    of_sample, of_period = gridworlds.out_of_sample_curves(size), gridworlds.target_period_curves(size)
    of_dr3, of_breakout = gridworlds.dr3_curves(size), breakout_curves(sizes.breakout_updates, size.seeds)
    curves = [*of_sample.values(), *of_period.values(), *of_dr3.values(), *of_breakout.values()]
    results = make(curves, out, finished)
    return [
        gridworlds.judge_out_of_sample(of_sample, results),
        gridworlds.judge_target_period(of_period, results),
        gridworlds.judge_dr3(of_dr3, results),
        judge_breakout(of_breakout, results),
    ]
