"""Reading a run folder: metrics as arrays, and the learned critics as functions of numpy arrays."""

from __future__ import annotations

from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.files import read_json
from dr3.hyperparameters import MOST
from dr3.methods import Method, Spec
from dr3.methods.acting import action_values, decide, probabilities
from dr3.runs.compiled_policy import CompiledPolicy
from dr3.runs.config import RunConfig
from dr3.runs.folder import RunFolder
from dr3.runs.member import differences
from dr3.runs.selected import selected, selected_at

if TYPE_CHECKING:
    from dr3.diagnostics import Health

OUTSIDE = 1e-6  # how far beyond their range, as a share of it, rounding may have put logged actions


class Runs:
    """The members of a finished, or of an unfinished, population."""

    def __init__(self, path: str | Path) -> None:
        self.folder = RunFolder(path)
        if not self.folder.config.exists():
            raise UserError(f"{path} is not a run: it has no config.json.")
        self.config = RunConfig.read(self.folder.config)
        self.members, self.spec = list(self.config.members), self.config.spec

    def __repr__(self) -> str:
        return f"<Runs {self.path}: {self.members[0].method.name}, {len(self)} members, step {self.status['step']}>"

    def __len__(self) -> int:
        return len(self.members)

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def labels(self) -> list[dict[str, Any]]:
        """For each member, the settings in which members differ."""
        return differences(self.members)

    @property
    def status(self) -> dict[str, Any]:
        """`step` reached, whether `finished`, and at which step each `diverged` member was frozen."""
        if not self.folder.status.exists():
            return {"step": 0, "finished": False, "diverged": {}}
        status = read_json(self.folder.status, step=int, finished=bool, diverged=dict)
        if not all(isinstance(step, int) for step in status["diverged"].values()):
            raise UserError(f"{self.folder.status} is damaged: not every one of its 'diverged' is a step.")
        return status

    # --- What was measured ---

    @cached_property
    def steps(self) -> NDArray[np.int64]:
        """The steps at which metrics were taken: (T,)."""
        return _steps(self._metrics)

    @cached_property
    def metrics(self) -> dict[str, NDArray[np.float64]]:
        """Every metric by name: (members, T), NaN where a member had diverged."""
        return _columns(self._metrics, len(self))

    @cached_property
    def evaluation_steps(self) -> NDArray[np.int64]:
        """The steps at which policies were evaluated: (E,)."""
        return _steps(self._evaluations)

    @cached_property
    def evaluations(self) -> dict[str, NDArray[np.float64]]:
        """Means over episodes by name, such as `evaluation/return`: (members, E)."""
        return _columns(self._evaluations, len(self))

    @cached_property
    def returns(self) -> list[list[list[float]]]:
        """The raw return of every episode: members x evaluations x episodes."""
        rows = {(row["step"], row["member"]): row.get("returns", []) for row in self._evaluations}
        return [[rows.get((int(step), number), []) for step in self.evaluation_steps] for number in range(len(self))]

    @cached_property
    def _metrics(self) -> list[dict[str, Any]]:
        return _checked(self.folder.lines(self.folder.metrics), self.folder.metrics, len(self))

    @cached_property
    def _evaluations(self) -> list[dict[str, Any]]:
        return _checked(self.folder.lines(self.folder.evaluations), self.folder.evaluations, len(self))

    # --- What was learned ---

    @property
    def checkpoints(self) -> list[int]:
        """The steps whose critics were saved, from the initial weights at 0 on."""
        return [step for step in self.folder.checkpoints.steps() if self.folder.checkpoints.intact(step)]

    def critics(self, step: int | None = None) -> list[Any]:
        """The critics of all members at a checkpoint, the last one by default."""
        saved = self.checkpoints
        step = saved[-1] if step is None and saved else step
        if step not in saved:
            raise UserError(f"{self.path} has no checkpoint of step {step}; it has {saved}.")
        like = [jax.eval_shape(partial(self._fresh_critic, number)) for number in range(len(self))]
        try:
            return jax.tree.map(jnp.asarray, self.folder.checkpoints.restore(step, like))
        except ValueError:
            raise UserError(
                f"{self.folder.checkpoints.path(step)} is damaged, or not of this run; choose another step of {saved}."
            ) from None

    def policy(
        self,
        observations: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        member: int | None = None,
        step: int | None = None,
    ) -> NDArray[Any]:
        """The learned actions: (n, *shape) -> (n, …); with a mask (n, A), the best of those that it allows.

        Of what was selected (`dr3 select`), else of member 0 at the last checkpoint. It is compiled once: rows come in
        any number, and one alone takes a fraction of a millisecond.
        """
        rows = self._observations(observations)
        return self._learned(member, step)(decide, rows, self._mask(mask, len(rows)))

    def action_values(
        self, observations: ArrayLike, *, member: int | None = None, step: int | None = None
    ) -> NDArray[Any]:
        """Q(s, ·) of all actions, where they are discrete: (n, A)."""
        self._need_discrete("action_values", "runs.q values actions that it is given")
        return self._learned(member, step)(action_values, self._observations(observations))

    def probabilities(
        self,
        observations: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        member: int | None = None,
        step: int | None = None,
    ) -> NDArray[Any]:
        """π(a|s) of all actions, where they are discrete: (n, A). A greedy policy's are 1 and 0."""
        self._need_discrete("probabilities", "a continuous policy has a density, and runs.policy gives its mode")
        rows = self._observations(observations)
        return self._learned(member, step)(probabilities, rows, self._mask(mask, len(rows)))

    def q(
        self, observations: ArrayLike, actions: ArrayLike, *, member: int | None = None, step: int | None = None
    ) -> NDArray[Any]:
        """Q(s, a): (n,)."""
        rows = self._observations(observations)
        return self._learned(member, step)(_values, rows, self._actions(actions, len(rows)))

    def features(
        self, observations: ArrayLike, actions: ArrayLike, *, member: int | None = None, step: int | None = None
    ) -> NDArray[Any]:
        """phi(s, a): (n, d), or (critics, n, d) of an ensemble."""
        rows = self._observations(observations)
        actions, learned = self._actions(actions, len(rows)), self._learned(member, step)
        return np.asarray(learned.method.features(learned.critic, jnp.asarray(rows), jnp.asarray(actions)))

    def place(self, member: int | None = None, step: int | None = None) -> tuple[int, int]:
        """The member and the step that are meant: what was selected, else member 0, at its last checkpoint.

        Args:
            member: Its number; None is the selected one.
            step: One of `checkpoints`; None is the selected one, if that is of this member.
        """
        choice = selected(self.path, member if isinstance(member, Integral) else None)
        if member is None:
            member = 0 if choice is None else choice[0]
        if not (isinstance(member, Integral) and 0 <= member < len(self)):
            raise UserError(f"{self.path} has {len(self)} members, numbered from 0; there is no member {member}.")
        saved = self.checkpoints
        if step is None:
            step = max(saved, default=0) if choice is None else choice[1]
            if step == 0:
                raise UserError(f"{self.path} has no policy: not a single update was made; train it first.")
        if step not in saved:
            raise UserError(f"{self.path} has no checkpoint of step {step}; it has {saved}.")
        return int(member), int(step)

    def health(self, data: Transitions | None = None, *, held_out: Transitions | None = None) -> Health:
        """What is wrong with the critics, since which step, and what to try: `print(runs.health())`."""
        # The doctor reads run folders, so it lives above this module; only this shortcut looks up at it.
        from dr3.diagnostics import health

        return health(self, data, held_out=held_out)

    def report(self, path: str | Path | None = None, *, data: Transitions | None = None) -> Path:
        """Write the HTML report, by default report.html in the run folder."""
        from dr3.reports.report import write_report  # as above; it also takes several runs

        return write_report(self, path, data=data)

    def _learned(self, member: int | None, step: int | None) -> CompiledPolicy:
        """Opened once, but for what was selected since."""
        asked = (member, step, selected_at(self.path))
        if asked not in self._places:
            self._places[asked] = self.place(member, step)
        number, at = place = self._places[asked]
        if place not in self._policies:
            self._policies[place] = CompiledPolicy(self.members[number].method, self.critics(at)[number], self.spec)
        return self._policies[place]

    def _observations(self, values: ArrayLike) -> NDArray[Any]:
        """Checked: real numbers, of the shape of the data's, finite."""
        observations = _numbers(values)
        if observations.shape[1:] != self.spec.observation_shape or not observations.ndim:
            raise UserError(
                f"Observations must have the shape (n, {', '.join(map(str, self.spec.observation_shape))}), "
                f"not {observations.shape}."
            )
        if observations.dtype.kind == "f" and not np.isfinite(observations).all():
            row = int(np.argwhere(~np.isfinite(observations))[0][0])
            raise UserError(f"Observations must be finite numbers; that of row {row} holds NaN or infinity.")
        return observations

    def _mask(self, values: ArrayLike | None, rows: int) -> NDArray[np.bool_] | None:
        """Checked: for each observation a boolean of every action, of which one at least is true."""
        if values is None:
            return None
        self._need_discrete("mask", "continuous actions are all allowed within their range")
        assert isinstance(self.spec.action_space, DiscreteActions)
        mask, shape = np.asarray(values), (rows, self.spec.action_space.count)
        if mask.shape != shape or not np.isin(mask, (0, 1)).all():
            raise UserError(f"A mask must be of booleans in the shape {shape}, not {mask.dtype} in {mask.shape}.")
        mask = mask.astype(np.bool_)
        if not mask.any(axis=1).all():
            raise UserError(
                f"A mask must allow an action in every row; that of row {np.argmin(mask.any(axis=1))} does not."
            )
        return mask

    def _need_discrete(self, what: str, instead: str) -> None:
        if not isinstance(self.spec.action_space, DiscreteActions):
            raise UserError(f"{what} is for discrete actions, and those of {self.path} are continuous: {instead}.")

    def _actions(self, column: ArrayLike, rows: int) -> NDArray[Any]:
        """Checked, and of the type that the methods expect."""
        actions, space = np.asarray(column), self.spec.action_space
        shape = (rows,) if isinstance(space, DiscreteActions) else (rows, space.size)
        if actions.shape != shape:
            raise UserError(f"Actions must have the shape {shape}, one for each observation, not {actions.shape}.")
        if isinstance(space, DiscreteActions) and not np.isin(actions, range(space.count)).all():
            raise UserError(f"Actions must be whole numbers from 0 to {space.count - 1}.")
        if isinstance(space, ContinuousActions):
            spare = OUTSIDE * (space.high - space.low)
            if not ((actions >= space.low - spare) & (actions <= space.high + spare)).all():  # false for NaN, too
                raise UserError(f"Actions must be numbers from {space.low:g} to {space.high:g}.")
        return actions.astype(np.int32 if isinstance(space, DiscreteActions) else np.float32)

    def _fresh_critic(self, number: int) -> Any:
        """Of the member's shapes: to be called by `jax.eval_shape` alone."""
        method = self.members[number].method
        return method.critic(method.init(self.spec, jax.random.key(0)))

    @cached_property
    def _policies(self) -> dict[tuple[int, int], CompiledPolicy]:
        return {}

    @cached_property
    def _places(self) -> dict[tuple[Any, ...], tuple[int, int]]:
        return {}


def _values(method: Method, critic: Any, spec: Spec, *rows: jax.Array) -> jax.Array:
    return method.values(critic, *rows)


def _numbers(values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise UserError("Observations must all have the same shape; these differ.") from None
    if array.dtype.kind not in "biuf":
        raise UserError(f"Observations must be real numbers, not values of type {array.dtype}.")
    return array


def _checked(rows: list[Any], file: Path, members: int) -> list[dict[str, Any]]:
    """Rows that are of this run; older versions wrote no checksum that would tell."""
    for number, row in enumerate(rows, start=1):
        fits = isinstance(row, dict) and _counts(row.get("step"), MOST) and _counts(row.get("member"), members - 1)
        fits = fits and isinstance(row.get("returns", []), list)
        numbers = [*row.get("returns", []), *(row[name] for name in row if "/" in name)] if fits else []
        if not fits or not all(isinstance(value, int | float | None) for value in numbers):
            raise UserError(f"{file} is damaged: row {number} is none of a run with {members} members.")
    return rows


def _counts(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _steps(rows: list[dict[str, Any]]) -> NDArray[np.int64]:
    return np.array(sorted({row["step"] for row in rows}), np.int64)


def _columns(rows: list[dict[str, Any]], members: int) -> dict[str, NDArray[np.float64]]:
    place = {step: number for number, step in enumerate(_steps(rows))}
    names = list({name: None for row in rows for name in row if "/" in name})
    columns = {name: np.full((members, len(place)), np.nan) for name in names}
    for row in rows:
        for name in names:
            if row.get(name) is not None:
                columns[name][row["member"], place[row["step"]]] = row[name]
    return columns
