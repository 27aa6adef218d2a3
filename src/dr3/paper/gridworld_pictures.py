"""A picture for each gridworld finding."""

from __future__ import annotations

from pathlib import Path

from dr3.envs import expected_return, gridworld, optimal_policy
from dr3.paper.gridworlds import DENSE_WORLD, DOT_PRODUCT, RETURN, SPARSE_WORLDS, Curve, Finding, Size, over_seeds
from dr3.reports.curves import Panel, draw


def draw_findings(findings: list[Finding], size: Size, out: Path) -> list[Path]:
    """Write `<id>.png` for each of the three findings."""
    panels = {
        "out-of-sample-actions": _out_of_sample_panels,
        "target-update-frequency": _target_period_panels,
        "dr3": _dr3_panels,
    }
    units = " x ".join(map(str, size.hidden))
    caption = f"thick: median of {size.seeds} seeds, thin: each seed; network of {units} units, 256 transitions"
    paths = [out / f"{finding.id}.png" for finding in findings]
    for finding, path in zip(findings, paths, strict=True):
        draw(panels[finding.id](finding, size), path, caption=caption)
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
    return [Panel(f"Q-learning on {DENSE_WORLD}, target updated every N steps", "feature dot product", lines, log=True)]


def _dr3_panels(finding: Finding, size: Size) -> list[Panel]:
    def name(curve: Curve) -> str:
        return "Q-learning" if curve.regularizer is None else f"with DR3, c0 = {size.coefficient:g}"

    world = gridworld(DENSE_WORLD)
    best = expected_return(
        world.transitions, world.rewards, optimal_policy(world, size.discount), world.start, world.horizon
    )
    dots = {name(curve): over_seeds(runs, DOT_PRODUCT) for curve, runs in finding.results.items()}
    returns = {name(curve): over_seeds(runs, RETURN) for curve, runs in finding.results.items()}
    return [
        Panel(f"Q-learning on {DENSE_WORLD}", "feature dot product", dots, log=True),
        Panel("greedy policy", "exact return", returns, reference=("optimal policy", best)),
    ]
