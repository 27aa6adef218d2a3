"""A picture for each finding of the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dr3.envs import expected_return, gridworld, optimal_policy
from dr3.paper.demonstration import Demonstration
from dr3.paper.findings import DOT_PRODUCT, Finding, over_seeds
from dr3.paper.gridworlds import DENSE_WORLD, SPARSE_WORLDS, Size
from dr3.paper.minatar_sample import COEFFICIENT
from dr3.reports.curves import Panel, draw
from dr3.runs.outcomes import RETURN


def draw_findings(findings: list[Finding], sizes: Demonstration, out: Path) -> list[Path]:
    """Write `<id>.png` for each finding."""
    panels = {
        "out-of-sample-actions": _out_of_sample_panels,
        "target-update-frequency": _target_period_panels,
        "dr3": _dr3_panels,
        "minatar": _breakout_panels,
    }
    size = sizes.gridworlds
    seeds = f"thick: median of {size.seeds} seeds, thin: each seed"
    grid = f"{seeds}; network of {' x '.join(map(str, size.hidden))} units, 256 transitions"
    paths = [out / f"{finding.id}.png" for finding in findings]
    for finding, path in zip(findings, paths, strict=True):
        draw(panels[finding.id](finding, size), path, caption=seeds if finding.id == "minatar" else grid)
    return paths


def _out_of_sample_panels(finding: Finding, size: Size) -> list[Panel]:
    names = {"td": "TD-learning", "sarsa": "offline SARSA", "supervised": "supervised regression"}
    return [
        Panel(
            world,
            "feature dot product",
            {
                names[curve.method.name]: over_seeds(runs, DOT_PRODUCT)
                for curve, runs in finding.results.items()
                if curve.world == world
            },
        )
        for world in SPARSE_WORLDS
    ]


def _target_period_panels(finding: Finding, size: Size) -> list[Panel]:
    lines = {
        f"N = {curve.method.synchronise_every}": over_seeds(runs, DOT_PRODUCT)
        for curve, runs in finding.results.items()
    }
    return [Panel(f"{DENSE_WORLD}, target updated every N steps", "feature dot product", lines, log=True)]


def _dr3_panels(finding: Finding, size: Size) -> list[Panel]:
    world = gridworld(DENSE_WORLD)
    best = expected_return(
        world.transitions, world.rewards, optimal_policy(world, size.discount), world.start, world.horizon
    )
    names = ("Q-learning", f"with DR3, c0 = {size.coefficient:g}")
    return [
        Panel(f"Q-learning on {DENSE_WORLD}", "feature dot product", _sides(finding, names, DOT_PRODUCT), log=True),
        Panel("greedy policy", "exact return", _sides(finding, names, RETURN), reference=("optimal policy", best)),
    ]


def _breakout_panels(finding: Finding, size: Size) -> list[Panel]:
    names = ("CQL", f"with DR3, c0 = {COEFFICIENT:g}")
    title = "CQL on 1 % of a replay of MinAtar's Breakout"
    panels = [Panel(title, "feature dot product", _sides(finding, names, DOT_PRODUCT), log=True)]
    if finding.numbers["played"]:
        panels.append(Panel("policy", "return of 10 episodes", _sides(finding, names, RETURN)))
    return panels


def _sides(finding: Finding, names: tuple[str, str], metric: str) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """The lines of both sides: without DR3, and with it."""
    return {names[curve.regularizer is not None]: over_seeds(runs, metric) for curve, runs in finding.results.items()}
