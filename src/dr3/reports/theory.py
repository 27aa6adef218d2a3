"""The theory's checks as pictures, drawn from nothing but their numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dr3.errors import UserError
from dr3.reports.style import PALETTE, style
from dr3.theory.checks.outcome import TheoryCheck

BLUE, ORANGE, GREEN = PALETTE[:3]
GREY = "#8A8F98"


def draw(checks: list[TheoryCheck], folder: Path) -> list[Path]:
    """One PNG per subject into `folder`, which is made if need be; the paths written."""
    numbers = {check.name: check.numbers for check in checks}
    pictures: dict[str, Callable[[Any, dict[str, dict[str, Any]]], None]] = {
        "theorem": _theorem,
        "covariance": _covariance,
        "dot_products": _dot_products,
        "proposition": _proposition,
    }
    return [_save(folder / f"{name}.png", picture, numbers) for name, picture in pictures.items()]


def _save(path: Path, picture: Callable[[Any, Any], None], numbers: Any) -> Path:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise UserError("Drawing needs matplotlib: pip install 'dr3[plots]'.") from missing
    path.parent.mkdir(parents=True, exist_ok=True)
    with style():
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        picture(figure, numbers)
        figure.savefig(path)
    return path


def draw_watch(rows: list[dict[str, Any]], folder: Path) -> Path:
    """`watch.png` into `folder`: what happens along a run, what noise adds to it, and the spectrum of K."""
    return _save(folder / "watch.png", _watch, rows)


def _watch(figure: Any, rows: list[dict[str, Any]]) -> None:
    happened, noise, spectrum = figure.subplots(1, 3)
    for seed in sorted({row["seed"] for row in rows}):
        mine = [row for row in rows if row["seed"] == seed]
        place = [row["step"] + 30 for row in mine]  # step 0 on a logarithmic axis
        first = seed == 0
        lines = (
            ("dot_product", BLUE, "∇Q·∇Q'"),
            ("squared_norm", GREY, "||∇Q||²"),
            ("feature_product", ORANGE, "φ(s)·φ(s')"),
        )
        for key, colour, label in lines:
            values = [row[key] for row in mine]
            happened.loglog(place, values, "o-", color=colour, markersize=3, alpha=0.8, label=label if first else None)
        for row, at in zip(mine, place, strict=True):
            real = np.array(row["eigenvalues"])[:, 0]
            for chosen, colour in ((real > 0, BLUE), (real < 0, ORANGE)):
                spectrum.plot(
                    np.full(chosen.sum(), at * 1.12**seed), np.abs(real[chosen]), "o", color=colour, markersize=2
                )
    measured = np.array([row["sgd"]["measured"] for row in rows])
    predicted = np.array([row["sgd"]["predicted"] for row in rows])
    errors = np.array([row["td_error"] for row in rows])
    sizes = np.abs(measured[measured != 0])  # a logarithmic axis has no place for nothing
    reach = [0.5 * sizes.min(), 2 * sizes.max()]
    dots = noise.scatter(
        np.abs(predicted),
        np.abs(measured),
        c=np.log10(errors),
        cmap="viridis",
        s=22,
        edgecolors=np.where(predicted * measured > 0, "none", "red"),
    )
    noise.plot(reach, reach, color=GREY, linewidth=0.8)
    noise.set(
        xscale="log",
        yscale="log",
        xlabel="|predicted|",
        ylabel="|measured|",
        title="What noise adds to ∇Q·∇Q' per step\n(red ring: the sign is wrong)",
    )
    figure.colorbar(dots, ax=noise, label="log10 of TD error")
    happened.set(xlabel="training step + 30", title="What happens")
    happened.legend(frameon=False, fontsize=8)
    spectrum.set(
        xscale="log", yscale="log", xlabel="training step + 30", ylabel="|Re λ(K)|", title="Spectrum (orange: Re λ < 0)"
    )


def _theorem(figure: Any, numbers: dict[str, dict[str, Any]]) -> None:
    data = numbers["Theorem 3.1, corrected"]
    every, path, limit = figure.subplots(1, 3)

    def gather(key: str) -> np.ndarray:
        # Instances differ in size by a hundred: each is shown in units of its own measured length.
        return np.concatenate([np.array(row[key]) / np.linalg.norm(row["measured"]) for row in data["instances"]])

    measured, corrected, printed = gather("measured"), gather("predicted"), gather("predicted_printed")
    reach = 1.05 * np.abs(measured).max()
    every.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8)
    every.plot(printed, measured, "x", color=ORANGE, markersize=4, label="printed R$_{TD}$")
    every.plot(corrected, measured, "o", color=BLUE, markersize=3, label="corrected R$_{TD}$")
    every.set(
        xlabel="predicted",
        ylabel="measured",
        title=f"Drift of each parameter, {len(data['instances'])} networks",
        xlim=(-3 * reach, 3 * reach),
    )
    every.legend(frameon=False, loc="upper left", fontsize=8)

    row = data["instances"][0]
    records = np.arange(1, len(row["along"]) + 1)
    offset = row["along"][0] - row["slope"]
    path.plot(records, row["along"], "o", color="black", markersize=3, label=f"mean of {data['chains']} chains")
    path.plot(records, offset + row["slope"] * records, color=BLUE, label="corrected")
    path.plot(records, offset + row["printed_slope"] * records, color=ORANGE, label="printed")
    path.set(xlabel="time η k", ylabel="displacement along the prediction", title="One network")
    path.set_ylim(min(0, 1.3 * min(row["along"])), 1.8 * max(row["along"]))
    path.legend(frameon=False, fontsize=8)

    scales = np.array(data["noise_scales"])
    limit.axhspan(0.97, 1.03, color=GREY, alpha=0.25, linewidth=0)
    limit.semilogx(data["eta"] * scales[:, 0] ** 2, scales[:, 1], "o-", color=BLUE, markersize=4)
    limit.set(xlabel="η σ² (strength of the noise)", ylabel="measured / predicted", title="The limit it is about")
    limit.set_ylim(min(0.0, 1.1 * scales[:, 1].min()), max(1.2, 1.1 * scales[:, 1].max()))


def _covariance(figure: Any, numbers: dict[str, dict[str, Any]]) -> None:
    growth, reach = figure.subplots(1, 2)
    data = numbers["Lemma C.2"]
    growth.plot(data["steps"], data["trace_predicted"], color=BLUE, label="Lyapunov recursion")
    growth.plot(data["steps"], data["trace_simulated"], "o", color="black", markersize=3, label="simulated chains")
    growth.axhline(data["trace_star"], color=GREY, linestyle="--", linewidth=0.9, label="Σ*")
    growth.set(
        xlabel="step k", ylabel="trace of the covariance", title="Lemma C.2: noise settles at Σ*", ylim=(0, None)
    )
    growth.legend(frameon=False)
    data = numbers["k = 20 steps"]
    for (steps, reached), colour in zip(data["reached"].items(), (ORANGE, BLUE, GREEN), strict=True):
        reach.semilogx(data["etas"], reached, "o-", color=colour, markersize=4, label=f"{steps} steps")
    low, high = min(data["eigenvalues"]), max(data["eigenvalues"])
    reach.set(
        xlabel="step size η",
        ylabel="share of trace Σ* reached",
        title=f"Iterating from 0 (eigenvalues {low:.0f} to {high:.0f})",
        ylim=(0, 1.05),
    )
    reach.legend(frameon=False)


def _dot_products(figure: Any, numbers: dict[str, dict[str, Any]]) -> None:
    parts = {
        "supervised": "supervised\npart",
        "bootstrap": "part that\nTD adds",
        "net": "together",
        "norm": "for comparison:\n||∇Q||², together",
    }
    axes = figure.subplots(1, 2, sharey=True)
    for axis, side in zip(axes, ("in sample", "out of sample"), strict=True):
        data = numbers[f"∇Q·∇Q', {side}"]
        axis.axhline(0, color=GREY, linewidth=0.8)
        for place, name in enumerate(parts):
            values = np.array(data[name])
            spread = place + np.linspace(-0.2, 0.2, len(values))
            axis.scatter(spread, values, s=10, color=np.where(values > 0, ORANGE, BLUE))
            axis.hlines(np.median(values), place - 0.3, place + 0.3, color="black", linewidth=1.6)
        axis.set_yscale("symlog", linthresh=1.0)
        axis.set_xticks(range(len(parts)), parts.values())
        axis.set_title(f"a' {side}")
    axes[0].set_ylabel("drift of ∇Q·∇Q' per step, in η²σ²")


def _proposition(figure: Any, numbers: dict[str, dict[str, Any]]) -> None:
    scatter, paths = figure.subplots(1, 2)
    data = numbers["Proposition 3.2, random"]
    ratios, slowest = np.array(data["ratios"]), np.array(data["slowest"])
    for chosen, colour, label in ((slowest > 0, BLUE, "converges"), (slowest <= 0, ORANGE, "does not")):
        scatter.plot(ratios[chosen], slowest[chosen], "o", color=colour, markersize=2.5, label=label)
    scatter.axvline(1, color=GREY, linestyle="--", linewidth=0.9)
    scatter.axhline(0, color=GREY, linewidth=0.8)
    scatter.set(xlabel="γ Σφ·φ' / Σφ·φ", ylabel="smallest Re λ(K)", title="Random features")
    scatter.legend(frameon=False, fontsize=8)

    rows = numbers["Proposition 3.2, gridworld"]["rows"]
    colours = {"phi(s)": BLUE, "∇_w Q(s, a)": ORANGE}
    for row in rows:
        norms = np.array(row["norms"])
        line = "--" if row["step"] == 0 else "-"
        label = f"{'φ(s)' if row['features'] == 'phi(s)' else '∇$_w$Q(s, a)'}, step {row['step']}"
        paths.loglog(2.0 ** np.arange(len(norms)), norms / norms[0], line, color=colours[row["features"]], label=label)
    paths.set(
        xlabel="steps of linear TD",
        ylabel="||g|| relative to start",
        title="Features of Q-learning on a gridworld",
        ylim=(1e-6, 1e6),
    )
    paths.legend(frameon=False, fontsize=8)
