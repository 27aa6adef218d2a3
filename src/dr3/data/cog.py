"""The original COG files (Singh et al., 2020): a pickled array of trajectories in a .npy file.

A trajectory is a dict of lists: `observations` and `next_observations` (dicts with an `image`, height x width x 3
bytes), `actions`, `rewards`, `terminals`; what else there is (`agent_infos`, `env_infos`) is not used. A pickle can run
any program, so it is loaded only when the caller says so, and even then only numbers are: a file that names anything
but numpy's arrays is refused.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dr3.data.assemble import assemble
from dr3.data.checks import check_booleans, check_numbers, check_vector, refuse
from dr3.data.frames import Frames
from dr3.data.gate import array_header, gated, opened
from dr3.data.transitions import Transitions

FIELDS = ("observations", "next_observations", "actions", "rewards", "terminals")
# Old numpy calls its inside numpy.core, new numpy numpy._core.
_NEEDED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),  # how bytes are spelled in the oldest protocols
}


class _CheckedArray(np.ndarray):
    def __setstate__(self, state: Any) -> None:
        """NumPy reads as many objects as the shape says, also behind the end of a shorter list."""
        _, shape, _, _, content = state
        if isinstance(content, list) and len(content) != math.prod(shape):
            raise pickle.UnpicklingError(f"an array of shape {shape} has {len(content)} objects")
        super().__setstate__(state)


class _Numbers(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = module.replace("numpy.core", "numpy._core")
        if (module, name) not in _NEEDED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _CheckedArray if name == "ndarray" else super().find_class(module, name)


@gated
def read_cog(path: str | os.PathLike[str], *, discount: float = 0.99, allow_pickle: bool = False) -> Transitions:
    """Read a COG file. Frames are stored once; a trajectory that does not end in a terminal ends in a time-out.

    Whether it is prior or task data the file does not say; `dr3.data.without_rewards` makes it prior data.

    Args:
        path: The file or folder.
        discount: γ of the Monte-Carlo returns, where the log holds none.
        allow_pickle: Load COG's own files, which are pickles and may run any program.
    """
    path = Path(path)
    source = str(path)
    opened(path).close()
    if not allow_pickle:
        refuse(
            source,
            "COG's files are pickles, which could run any program; if you trust this one, turn it into a plain file "
            f"once: dr3 data convert {path} {path.with_suffix('.npz')} --allow-pickle.",
        )
    warnings.warn(f"{source} is a pickle: load it only if you trust where it comes from.", stacklevel=2)
    trajectories = _trajectories(path)
    if not trajectories:
        refuse(source, "it has no trajectories, so there is nothing to learn from.")
    for number, trajectory in enumerate(trajectories):
        _check(source, number, trajectory)
    frames, now, following = _frames(source, trajectories)
    actions, rewards, terminals = _steps(source, trajectories)
    lengths = [len(trajectory["rewards"]) for trajectory in trajectories]
    last = np.zeros(len(terminals), np.bool_)
    last[np.cumsum(lengths) - 1] = True
    columns = {
        "observations": Frames(frames, now),
        "next_observations": Frames(frames, following),
        "actions": actions,
        "rewards": rewards,
        "terminals": terminals & last,  # a flag inside a trajectory ended nothing: the script went on
        "timeouts": last & ~terminals,
        "episodes": np.repeat(np.arange(len(lengths)), lengths),
    }
    return assemble(columns, source=source, name=path.stem, discount=discount)


def _trajectories(path: Path) -> list[dict[str, Any]]:
    source = str(path)
    with opened(path) as file:
        shape, _, dtype, _ = array_header(file, source, pickled=True)
        if dtype != np.dtype(object) or len(shape) != 1:
            refuse(source, f"it holds {dtype} of shape {shape}, but a COG file is a row of trajectories.")
        try:
            content = io.BytesIO(file.read())
            size = len(content.getbuffer())
            # Every length is compared with what there is, before any of them is believed: 4 GB in a file of 700 bytes.
            # So is the number of a thing to remember, for which Python makes room up to that number.
            for operation, number, _ in pickletools.genops(content):
                if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(number or 0) > size:
                    raise pickle.UnpicklingError(f"it remembers things up to number {number}")
            content.seek(0)
            return list(_Numbers(content).load())
        except MemoryError:
            raise
        except Exception as error:  # a pickle is a program: whatever it calls may raise whatever it likes
            refuse(source, f"its pickle is damaged, or holds more than numbers ({error}).")


def _check(source: str, number: int, trajectory: Any) -> None:
    if not isinstance(trajectory, dict):
        refuse(source, f"trajectory {number} is not a dict.")
    for field in FIELDS:
        if field not in trajectory:
            refuse(source, f"trajectory {number} has no '{field}'; it needs {', '.join(FIELDS)}.")
        values = trajectory[field]
        if not isinstance(values, list | tuple | np.ndarray) or getattr(values, "shape", None) == ():
            refuse(source, f"the '{field}' of trajectory {number} are no list with an entry for each step.")
    lengths = {field: len(trajectory[field]) for field in FIELDS}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        refuse(source, f"trajectory {number} has fields of different or no length: {lengths}.")


def _steps(
    source: str, trajectories: list[dict[str, Any]]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Actions, rewards and terminals of all trajectories, one behind the other."""
    actions, rewards, terminals = [], [], []
    for number, trajectory in enumerate(trajectories):
        place, steps = f"{source}, trajectory {number}", len(trajectory["rewards"])
        plain = {field: _plain(place, field, trajectory[field]) for field in ("actions", "rewards", "terminals")}
        actions.append(check_numbers(place, "actions", plain["actions"], steps))
        rewards.append(check_vector(place, "rewards", plain["rewards"], steps))
        terminals.append(check_booleans(place, "terminals", plain["terminals"], steps))
        here, there = actions[-1].shape[1:], actions[0].shape[1:]
        if here != there:
            refuse(place, f"a row of 'actions' has shape {here}, but in trajectory 0 {there}.")
    together = np.concatenate(actions).astype(np.float32), np.concatenate(rewards).astype(np.float32)
    return *together, np.concatenate(terminals)


def _plain(place: str, field: str, values: Any) -> NDArray[Any]:
    try:
        return np.asarray(list(values))
    except ValueError:
        refuse(place, f"the rows of '{field}' are of different lengths.")


def _frames(
    source: str, trajectories: list[dict[str, Any]]
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    """Every image once, and where each row finds its s and its s'."""
    stored: list[NDArray[np.uint8]] = []
    now, following = [], []
    for number, trajectory in enumerate(trajectories):
        for step, observation in enumerate(trajectory["observations"]):
            image = _image(source, number, step, observation)
            # Usually the s' of the step before is this very image.
            if step == 0 or not np.array_equal(stored[-1], image):
                stored.append(image)
            now.append(len(stored) - 1)
            stored.append(_image(source, number, step, trajectory["next_observations"][step]))
            following.append(len(stored) - 1)
    if any(image.shape != stored[0].shape for image in stored):
        refuse(source, "its images are not all of one size.")
    return np.stack(stored), np.array(now, np.int32), np.array(following, np.int32)


def _image(source: str, number: int, step: int, observation: Any) -> NDArray[np.uint8]:
    image = observation.get("image") if isinstance(observation, dict) else None
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3:
        refuse(source, f"step {step} of trajectory {number} has no 'image' of height x width x 3 bytes.")
    return image
