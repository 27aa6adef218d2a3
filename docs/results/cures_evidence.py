"""What the parts of the table in cures.md have in common: settings, how one is chosen, and a line of evidence a run."""

from __future__ import annotations

import csv
import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dr3.compiled_programs import keep_compiled_programs
from dr3.cures.remedies import treatment_for
from dr3.diagnostics import select
from dr3.runs.outcomes import RETURN
from dr3.stats import forward_fill

EVIDENCE = Path(__file__).parents[1] / "evidence" / "cures"
PUBLISHED = ("published",)  # the only setting of what has no number of its own, where learning rates are not tuned
COLUMNS = ("remedy", "setting", "world", "seed", "score", "peak", "dot_product", "cosine", "norm", "srank", "q_mean")
COLUMNS += ("beer_can_act", "diverged", "early_stop", "early_stop_step")
METRICS = {
    "dot_product": "features/dot_product",
    "cosine": "features/cosine",
    "norm": "features/norm",
    "srank": "features/srank",
    "q_mean": "q/data_mean",
    "beer_can_act": "losses/beer_can_act",
}
Row = dict[str, str]
Key = tuple[str, str, str, int]  # remedy, setting, world, seed


@dataclass(frozen=True)
class Part:
    """Remedies, their settings, and the worlds and seeds on which they are tuned and judged."""

    name: str  # of its files
    worlds: tuple[str, ...]
    numbers: Mapping[
        str, tuple[str, ...]
    ]  # of a remedy with a number of its own: three of it, the default in the middle
    switches: tuple[str, ...]  # all others that are not two together
    together: tuple[str, ...]
    tuning: tuple[tuple[str, int], ...]  # worlds and seeds
    rates: tuple[str, ...] = PUBLISHED  # the settings of a switch
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what a remedy sets here and not elsewhere
    columns: tuple[str, ...] = COLUMNS

    @property
    def once_tuned(self) -> tuple[str, ...]:
        return (*self.switches, *self.numbers)

    @property
    def remedies(self) -> tuple[str, ...]:
        return (*self.once_tuned, *self.together)

    def settings_of(self, remedy: str) -> tuple[str, ...]:
        """What a remedy is tuned over."""
        return self.numbers.get(remedy, self.rates)

    def choices(self, method: str) -> dict[str, str]:
        """Of every remedy the setting with the highest mean score in tuning; of equal ones the default, then the
        first."""
        scores: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in self.read(method, "tuning"):
            scores[row["remedy"], row["setting"]].append(float(row["score"]))
        found = {}
        for remedy in self.once_tuned:
            settings = self.settings_of(remedy)
            own = [one for one in settings if (remedy, one) in scores or len(settings) == 1]
            if own:
                default = settings[len(settings) // 2]
                found[remedy] = max(
                    own, key=lambda one: (round(float(np.mean(scores.get((remedy, one), [0.0]))), 9), one == default)
                )
        return found

    def arm(self, base: Any, remedy: str, setting: str, data: Any) -> tuple[Any, Any]:
        """The method and the term of a remedy at its setting; that of two together is both, with a space between."""
        words = []
        for name, one in zip(remedy.split("+"), setting.split(" "), strict=True):
            key, _, value = one.partition("=")
            if one == PUBLISHED[0]:
                words.append(name)
            elif name in self.numbers and ":" in one:  # a term, with its coefficient
                words.append(one)
            else:
                base = dataclasses.replace(base, **{key: type(getattr(base, key))(float(value))})
                if name not in self.numbers:
                    words.append(name)
        found = treatment_for("+".join(words or ["none"]), base, data)
        method: Any = found.method
        for name in words:
            method = dataclasses.replace(method, **self.sets.get(name, {}))
        return method, found.regularizer

    # --- The lines ---

    def read(self, method: str, kind: str) -> list[Row]:
        """The lines that are there; `kind` is tuning or runs."""
        path = self._file(method, kind)
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def carry_out(
        self,
        method: str,
        kind: str,
        wanted: Iterable[Key],
        run: Callable[[str, Key], Row],
        once_kept: Callable[[Key], None] | None = None,
    ) -> None:
        """Those whose line is not there."""
        there = {(row["remedy"], row["setting"], row["world"], int(row["seed"])) for row in self.read(method, kind)}
        for key in wanted:
            if key not in there:
                row = run(method, key)
                self._append(method, kind, row)
                print(method, kind, *row.values(), flush=True)
                if once_kept is not None:
                    once_kept(key)

    def _append(self, method: str, kind: str, row: Row) -> None:
        path = self._file(method, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)

    def _file(self, method: str, kind: str) -> Path:
        return EVIDENCE / f"{self.name}-{method}-{kind}.csv"


def row_of(runs: Any, key: Key, limits: tuple[float, float], data: Any, columns: Sequence[str] = COLUMNS) -> Row:
    """What is kept of a run of one member. A score is 0 at the first of the limits and 100 at the second."""
    remedy, setting, world, seed = key
    low, high = limits
    scores = 100 * (forward_fill(runs.evaluations[RETURN])[0] - low) / (high - low)
    row = dict.fromkeys(columns, "")
    row |= {"remedy": remedy, "setting": setting, "world": world, "seed": str(seed)}
    row |= {"score": f"{scores[-1]:.3f}", "peak": f"{scores.max():.3f}"}
    row |= {
        name: f"{forward_fill(runs.metrics[metric])[0, -1]:.4g}"
        for name, metric in METRICS.items()
        if metric in runs.metrics
    }
    if "return" in columns:
        row["return"] = f"{forward_fill(runs.evaluations[RETURN])[0, -1]:.3f}"
    row["diverged"] = str(len(runs.status["diverged"]))
    if remedy == "none":
        steps = list(runs.evaluation_steps)
        step = select(runs, "healthy", data).choices[0].step
        step = steps[-1] if step is None else step
        row["early_stop"] = f"{scores[steps.index(step)]:.3f}"
        row["early_stop_step"] = str(step)
    return row


def keep_programs() -> None:
    """Compiled programs in the user's cache. JAX is loaded by now, and is told so itself."""
    keep_compiled_programs()
    jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
