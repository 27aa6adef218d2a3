from __future__ import annotations

import dataclasses
import gc
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from dr3.data import assemble
from dr3.data.transitions import ContinuousActions, DiscreteActions, Transitions, monte_carlo_returns
from dr3.errors import UserError


def pytest_configure(config: pytest.Config) -> None:
    """Compiling is most of what tests cost: what one has compiled, others take, also in other processes.

    The folder goes when the tests end: JAX writes to it in place, and what a killed process leaves would stay.
    """
    if (folder := os.environ.get("JAX_COMPILATION_CACHE_DIR")) is None:
        folder = os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="dr3-compiled-")
        config.add_cleanup(partial(shutil.rmtree, folder))
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


# Rooms and files whose tests train, begin processes or compile whole loops: `make quick` leaves them out.
SLOW = (
    *("collect", "cures", "diagnostics", "export", "integrations", "networks", "ope", "reports", "sweeps", "theory"),
    *("training", "contracts/test_masks.py", "contracts/test_regularizers.py", "paper/experiments/test_smoke.py"),
    *(f"cli/test_{name}.py" for name in ("demo", "diagnose_and_select", "evaluate", "reproduce", "sweep", "train")),
    *(f"methods/test_{name}.py" for name in ("cloning", "continuous", "remedies")),
)
# Of contracts that every method is held to, `make quick` has those of one method for discrete and one for continuous
# actions.
QUICK_METHODS = ("dqn", "sac")


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place, case = item.path.relative_to(Path(__file__).parent).as_posix(), getattr(item, "callspec", None)
        of_methods = place.startswith(("contracts/test_methods.", "contracts/test_doctor.", "contracts/test_export."))
        of_another = of_methods and case is not None and {*case.id.split("-")}.isdisjoint(QUICK_METHODS)
        if of_another or place.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


MAPS = Path("/proc/self/maps")


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps():
    """Forget compiled programs before they are too many.

    Each has some ten memory maps, of which Linux gives a process 65,530: with all tests in two processes the one too
    many ends the process without a word.
    """
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()
        gc.collect()


QUICKLY = ("test_masks", "test_methods", "test_doctor", "test_demo")


@pytest.fixture(autouse=True, scope="module")
def compiled_quickly(request):
    """Formulas are checked on small arrays: compiling without XLA's
    optimizations takes a third less time there.

    Networks, whose products are written for what XLA makes of them, whole runs, their bits and the theory's long loops
    have the programs that users have.
    """
    room, file = request.path.parent.name, request.path.stem
    jax.config.update("jax_disable_most_optimizations", room in ("methods", "regularizers") or file in QUICKLY)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def camera() -> None:
    """Skip where MuJoCo cannot draw: it needs a library of the system, which pip cannot bring."""
    pytest.importorskip("mujoco", reason="drawing needs MuJoCo", exc_type=ImportError)
    from dr3.envs.drawers_scene import Scene

    scene = Scene()
    try:
        scene.picture(8)
    except UserError as error:
        pytest.skip(str(error))
    scene.close()


@pytest.fixture(scope="session")
def logged() -> Transitions:
    """48 rows in 6 episodes of a made-up world: every other episode ends, the others are cut; every column is there."""
    random = np.random.default_rng(0)
    rows, length, actions = 48, 8, 3
    rewards = random.normal(size=rows).astype(np.float32)
    episodes = np.repeat(np.arange(rows // length, dtype=np.int32), length)
    last = np.arange(rows) % length == length - 1
    terminals = last & (episodes % 2 == 0)
    behavior = random.dirichlet(np.ones(actions), size=rows).astype(np.float32)
    return Transitions(
        observations=random.normal(size=(rows, 4)).astype(np.float32),
        actions=random.integers(actions, size=rows).astype(np.int32),
        rewards=rewards,
        next_observations=random.normal(size=(rows, 4)).astype(np.float32),
        terminals=terminals,
        timeouts=last & ~terminals,
        next_actions=random.integers(actions, size=rows).astype(np.int32),
        next_action_known=~terminals,
        returns=monte_carlo_returns(rewards, episodes, 0.99),
        episodes=episodes,
        action_space=DiscreteActions(actions),
        returns_discount=0.99,
        next_behavior=behavior,
        name="logged",
    )


@pytest.fixture(scope="session")
def logged_continuous(logged) -> Transitions:
    """The same 48 rows with actions of two numbers between -2 and 3."""
    random = np.random.default_rng(1)
    actions, following = random.uniform(-2, 3, size=(2, len(logged), 2)).astype(np.float32)
    return dataclasses.replace(
        logged,
        actions=actions,
        next_actions=np.where(logged.next_action_known[:, None], following, 0).astype(np.float32),
        action_space=ContinuousActions(2, -2.0, 3.0),
        next_behavior=None,
        name="logged-continuous",
    )


@pytest.fixture(scope="session")
def logged_pictures(logged_continuous) -> Transitions:
    """The same actions in pictures of 6 x 6, bytes."""
    pictures = np.random.default_rng(2).integers(0, 256, (2, len(logged_continuous), 6, 6, 3), np.uint8)
    return dataclasses.replace(
        logged_continuous, observations=pictures[0], next_observations=pictures[1], name="logged-pictures"
    )


@dataclass(frozen=True)
class Corridor:
    """Five cells, seen as one of five booleans; 1 goes right, 0 goes left, and the last cell pays 1 and is the end."""

    name: str = "corridor"
    observation_shape: tuple[int, ...] = (5,)
    actions: int = 2

    def reset(self, key):
        import jax.numpy as jnp

        return jnp.int32(0), jnp.arange(5) == 0

    def step(self, state, action, key):
        import jax.numpy as jnp

        from dr3.envs import Step

        cell = jnp.clip(state + 2 * action - 1, 0, 4).astype(jnp.int32)
        return Step(cell, jnp.arange(5) == cell, (cell == 4).astype(jnp.float32), cell == 4)


@pytest.fixture(scope="session")
def corridor() -> Corridor:
    return Corridor()


@pytest.fixture(scope="session")
def corridor_log() -> Transitions:
    """Straight to the end, then to and fro until the time is up."""
    cells = np.array([0, 1, 2, 3, 0, 1, 0, 1, 2])
    columns = {
        "observations": np.eye(5, dtype=np.bool_)[cells],
        "actions": np.array([1, 1, 1, 1, 1, 0, 1, 1, 0]),
        "rewards": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0], np.float32),
        "terminals": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0], np.bool_),
        "timeouts": np.array([0, 0, 0, 0, 0, 0, 0, 0, 1], np.bool_),
    }
    return assemble(columns, source="corridor", name="corridor")


@pytest.fixture(scope="session")
def small_run(tmp_path_factory) -> Path:
    """DQN with and without DR3 on a gridworld, two seeds each: measured at 0, 10, …, 40, checkpoints at 0, 20, 40."""
    from dr3.data import load
    from dr3.methods import DQN
    from dr3.regularizers import DR3
    from dr3.training import train

    method = DQN(hidden=(8, 6), batch_size=16, learning_rate=0.01, target_period=10, discount=0.9)
    out = tmp_path_factory.mktemp("small") / "run"
    data = load("grid16smoothobs:size=64", discount=method.discount)
    train(
        data,
        method,
        regularizer=[None, DR3(0.1)],
        seeds=2,
        steps=40,
        metrics_every=10,
        evaluate_every=20,
        out=out,
        progress=False,
    )
    return out


@pytest.fixture
def copied_run(small_run, tmp_path) -> Path:
    """That run, to be changed, without what another test's report may have measured of it."""
    return Path(shutil.copytree(small_run, tmp_path / "run", ignore=shutil.ignore_patterns("measurements")))


@pytest.fixture
def foreign_modules(tmp_path) -> Path:
    """Modules that came with some data into `tmp_path`: the file that is there once any of them has been run.

    Of packages that are installed, of one that is not, and of one that JAX imports wherever it finds it. Beside them
    the folder `own`, with a plugin of the user's.
    """
    mark = tmp_path / "mark"
    (tmp_path / "jax_plugins").mkdir()
    for name in ("equinox", "numpy", "jax", "filelock", "h5py", "ray", "psutil", "pandas", "jax_plugins/evil"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\ndef initialize(): pass\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "from_python_path.py").write_text("import dr3\n")
    return mark


class Ladder:
    """Five rungs, on the host: 1 climbs, 0 stays, one move in ten slips. The top pays 3 and is the end; 9 steps are the
    limit. The first byte of a 2 x 2 frame is the rung and the second the age, both from 1.
    """

    name, frame_shape, stack, actions = "ladder", (2, 2), 4, 2

    def open(self, copies: int) -> LadderGames:
        return LadderGames(copies)


class LadderGames:
    def __init__(self, copies: int) -> None:
        self.copies = copies

    def reset(self, seeds):
        self.chance = [np.random.default_rng(int(seed)) for seed in seeds]
        self.rung, self.age = np.zeros(self.copies, np.int64), np.zeros(self.copies, np.int64)
        return self._frames()

    def step(self, actions):
        from dr3.envs import Moves

        slips = np.array([chance.random() < 0.1 for chance in self.chance])
        self.rung, self.age = self.rung + (np.asarray(actions) == 1) * ~slips, self.age + 1
        top = self.rung == 4
        return Moves(self._frames(), 3.0 * top, top, (self.age == 9) & ~top)

    def close(self) -> None:
        pass

    def _frames(self):
        frames = np.zeros((self.copies, 2, 2), np.uint8)
        frames[:, 0, 0], frames[:, 0, 1] = self.rung + 1, self.age + 1
        return frames


@pytest.fixture(scope="session")
def ladder() -> Ladder:
    return Ladder()
