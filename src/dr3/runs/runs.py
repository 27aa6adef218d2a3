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

from dr3.data.transitions import DiscreteActions, Transitions
from dr3.errors import UserError
from dr3.files import read_json, read_lines
from dr3.runs import config as configuration
from dr3.runs.folder import RunFolder
from dr3.runs.member import Member, differences

if TYPE_CHECKING:
    from dr3.diagnostics import Health


# What is read of a configuration, here and by those that look at runs.
NEEDED = {
    "data": dict,
    "observation_shape": list,
    "action_space": dict,
    "members": list,
    "steps": int,
    "metrics_every": int,
    "evaluate_every": int,
}


class Runs:
    """The members of a finished, or of an unfinished, population."""

    def __init__(self, path: str | Path) -> None:
        self.folder = RunFolder(path)
        if not self.folder.config.exists():
            raise UserError(f"{path} is not a run: it has no config.json.")
        self.config = read_json(self.folder.config, **NEEDED)
        try:
            self.members = [Member.from_json(record) for record in self.config["members"]]
            self.spec = configuration.spec_of(self.config)
        except (UserError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"{self.folder.config} is not of a run that this dr3 can read ({error!r}).") from None
        if not self.members:
            raise UserError(f"{self.folder.config} is not of a run: it has no members.")

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
    def data_discount(self) -> float:
        """The discount that the data were loaded with, which need not be the method's; older runs do not say it."""
        return self.config["data"].get("discount", self.members[0].method.discount)

    @property
    def status(self) -> dict[str, Any]:
        """`step` reached, whether `finished`, and at which step each `diverged` member was frozen."""
        if not self.folder.status.exists():
            return {"step": 0, "finished": False, "diverged": {}}
        return read_json(self.folder.status, step=int, finished=bool, diverged=dict)

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
        """The steps at which policies were tried: (E,)."""
        return _steps(self._evaluations)

    @cached_property
    def evaluations(self) -> dict[str, NDArray[np.float64]]:
        """Means over episodes by name, such as `evaluation/return`: (members, E)."""
        return _columns(self._evaluations, len(self))

    @cached_property
    def returns(self) -> list[list[list[float]]]:
        """The raw return of every episode: members x evaluations x episodes."""
        rows = {(row["step"], row["member"]): row["returns"] for row in self._evaluations}
        return [[rows.get((int(step), number), []) for step in self.evaluation_steps] for number in range(len(self))]

    @cached_property
    def _metrics(self) -> list[dict[str, Any]]:
        return read_lines(self.folder.metrics)

    @cached_property
    def _evaluations(self) -> list[dict[str, Any]]:
        return read_lines(self.folder.evaluations)

    # --- What was learned ---

    @property
    def checkpoints(self) -> list[int]:
        """The steps whose critics were saved, from the initial weights at 0 on."""
        return [step for step in self.folder.checkpoints.steps() if self.folder.checkpoints.whole(step)]

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

    def policy(self, observations: ArrayLike, *, member: int = 0, step: int | None = None) -> NDArray[Any]:
        """The learned actions: (n, *shape) -> (n, …)."""
        return self._call("act", member, step, observations)

    def q(
        self, observations: ArrayLike, actions: ArrayLike, *, member: int = 0, step: int | None = None
    ) -> NDArray[Any]:
        """Q(s, a): (n,)."""
        return self._call("values", member, step, observations, actions)

    def features(
        self, observations: ArrayLike, actions: ArrayLike, *, member: int = 0, step: int | None = None
    ) -> NDArray[Any]:
        """phi(s, a): (n, d), or (critics, n, d) of an ensemble."""
        return self._call("features", member, step, observations, actions)

    def health(self, data: Transitions | None = None, *, held_out: Transitions | None = None) -> Health:
        """What is wrong with the critics, since which step, and what to try: `print(runs.health())`."""
        # The doctor reads run folders, so it lives above this module; only this shortcut looks up at it.
        from dr3.diagnostics import health

        return health(self, data, held_out=held_out)

    def report(self, path: str | Path | None = None, *, data: Transitions | None = None) -> Path:
        """Write the HTML report, by default report.html in the run folder."""
        from dr3.reports.report import write_report  # as above; it also takes several runs

        return write_report(self, path, data=data)

    def _call(
        self, function: str, member: int, step: int | None, observations: ArrayLike, *more: ArrayLike
    ) -> NDArray[Any]:
        if not (isinstance(member, Integral) and 0 <= member < len(self)):
            raise UserError(f"{self.path} has {len(self)} members, numbered from 0; there is no member {member}.")
        observations = _numbers(observations)
        if observations.shape[1:] != self.spec.observation_shape:
            raise UserError(
                f"Observations must have the shape (n, {', '.join(map(str, self.spec.observation_shape))}), "
                f"not {observations.shape}."
            )
        actions = [self._actions(column, len(observations)) for column in more]
        key = (member, step)
        if key not in self._critics:
            self._critics[key] = self.critics(step)[member]
        answer = getattr(self.members[member].method, function)
        return np.asarray(answer(self._critics[key], jnp.asarray(observations), *actions))

    def _actions(self, column: ArrayLike, rows: int) -> jax.Array:
        """Checked, and of the type that the methods expect."""
        actions, space = np.asarray(column), self.spec.action_space
        shape = (rows,) if isinstance(space, DiscreteActions) else (rows, space.size)
        if actions.shape != shape:
            raise UserError(f"Actions must have the shape {shape}, one for each observation, not {actions.shape}.")
        if isinstance(space, DiscreteActions) and not np.isin(actions, range(space.count)).all():
            raise UserError(f"Actions must be whole numbers from 0 to {space.count - 1}.")
        return jnp.asarray(actions, jnp.int32 if isinstance(space, DiscreteActions) else jnp.float32)

    def _fresh_critic(self, number: int) -> Any:
        """Of the member's shapes: to be called by `jax.eval_shape` alone."""
        method = self.members[number].method
        return method.critic(method.init(self.spec, jax.random.key(0)))

    @cached_property
    def _critics(self) -> dict[tuple[int, int | None], Any]:
        return {}


def _numbers(values: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise UserError("Observations must all have the same shape; these differ.") from None
    if array.dtype.kind not in "biuf":
        raise UserError(f"Observations must be real numbers, not values of type {array.dtype}.")
    return array


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
