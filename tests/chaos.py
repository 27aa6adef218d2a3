"""Kills, damages and full disks at random, over the commands as users run them: `make chaos`.

Every round begins one command in a process of its own, troubles it, and runs it again undisturbed. It must then end as
if nothing had happened, or, where a file was damaged, say so in a sentence. What happens follows from the printed seed;
when exactly it happens does not, because processes take the time they take.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dr3
from dr3.data import assemble, write
from dr3.runs import Runs, digest

NETWORK = "--hidden 8 --batch-size 8 --target-period 7"
CADENCE = "--metrics-every 10 --evaluate-every 50 --chunk 5"
GRID = """
steps = 200
data = ["{data}", "{data}:fraction=0.5"]
env = "none"
metrics_every = 10
[methods.dqn]
hidden = [8]
batch_size = 8
"""
# What each command is called with; {out} is its own folder, {run} a finished run.
COMMANDS = {
    "train": f"train dqn --data {{data}} --steps 300 --seeds 2 --env none {NETWORK} {CADENCE} --out {{out}}/run",
    "sweep": "sweep {grid} --out {out} --workers 1 --save-every 0",
    "collect": "data collect dqn --env minatar/breakout --steps 1200 --out {out}/replay.npz",
    "tune": f"tune dqn --data {{data}} --steps 100 --coefficients 0.01 0.1 {NETWORK} {CADENCE} --out {{out}}/run",
    "compare": f"compare dqn --data {{data}} --steps 100 --seeds 2 --env none {NETWORK} {CADENCE} --out {{out}}/run",
    "reproduce": "reproduce table-E.1 --scale smoke --out {out} --workers 1",
    "export": "export {run} --to npz --out {out}/policy.npz",
    "evaluate": "evaluate {run} --json",
}
# Python gets "File too large" where a full disk would say "No space left": the same exception.
LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""
TROUBLES = ("kill", "stop", "full disk", "damage")


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it said."""

    code: int | None  # None: it hung
    said: str
    out: str

    @property
    def broke(self) -> bool:
        return self.code is None or "Traceback (most recent" in self.said or self.code in (-6, -11, -7)


class Chaos:
    """One folder in which everything happens."""

    def __init__(self, folder: Path, chance: random.Random, commands: list[str], patience: float) -> None:
        self.folder, self.chance, self.commands = folder, chance, commands
        self.patience = patience  # seconds after which a command counts as hung
        self.places = {"data": folder / "logged.npz", "grid": folder / "grid.toml", "run": folder / "first" / "run"}
        write(self.places["data"], logged())
        self.places["grid"].write_text(GRID.format(data=self.places["data"]))
        self.expected: dict[str, tuple[str, float]] = {}
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        ended = self.run("train", folder / "first")
        assert ended.code == 0, ended.said

    def run(
        self, name: str, out: Path, *, signal_after: float | None = None, number: int = 0, limit: int | None = None
    ) -> Ended:
        """Carry out a command, perhaps with a signal after some seconds or a limit to the size of a file."""
        words = [sys.executable, "-P", "-m", "dr3"]
        words += [word.format(out=out, **self.places) for word in COMMANDS[name].split()]
        out.mkdir(exist_ok=True)
        began = subprocess.Popen(
            [*([] if limit is None else [sys.executable, "-c", LIMITED, str(limit)]), *words],
            cwd=self.folder,
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(self.folder / "xla")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            if signal_after is not None:
                try:
                    began.wait(signal_after)
                except subprocess.TimeoutExpired:
                    began.send_signal(number)
            said_out, said = began.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            began.kill()
            began.communicate()
            return Ended(None, "it hung", "")
        return Ended(began.returncode, said, said_out)

    def undisturbed(self, name: str) -> tuple[str, float]:
        """What the command makes when nothing happens, and how long it takes."""
        if name not in self.expected:
            out, since = self.folder / f"{name}-undisturbed", time.monotonic()
            ended = self.run(name, out)
            assert ended.code == 0, f"{name}: {ended.said}"
            self.expected[name] = result(name, out, ended), time.monotonic() - since
        return self.expected[name]

    def round(self, number: int) -> None:
        name, trouble = self.chance.choice(self.commands), self.chance.choice(TROUBLES)
        moment, size, place = self.chance.random(), self.chance.randrange(100, 30_000), self.chance.random()
        expected, seconds = self.undisturbed(name)
        out = self.folder / f"{number}-{name}"
        if trouble == "full disk":
            first = self.run(name, out, limit=size)
        else:
            which = signal.SIGTERM if trouble == "stop" else signal.SIGKILL
            first = self.run(name, out, signal_after=moment * seconds, number=which)
        time.sleep(0.5)  # workers of a sweep that was killed save and leave
        damaged = damage(out, self.chance, place) if trouble == "damage" else None
        again = self.run(name, out)
        if again.code == 2 and "is there already" in again.said:  # it had ended before the trouble came
            again = Ended(0, again.said, again.out)
        found = outcome(name, out, again)
        self.counts[trouble] += 1
        place_of = f"round {number}, {name}, {trouble}{'' if damaged is None else f' of {damaged}'}"
        if first.broke or again.broke:
            self.fail("broke", place_of, again if again.broke else first)
        elif again.code == 0 and found == expected:
            self.counts["same"] += 1
        elif damaged is not None and (
            isinstance(found, dr3.UserError) or (again.code in (1, 2) and again.said.strip())
        ):
            self.counts["said"] += 1  # by the command, or by whoever reads what it had finished before
            print(f"  {place_of}: {found if again.code == 0 else again.said.strip().splitlines()[-1]}", flush=True)
        else:
            self.fail("differed", place_of, again)
        shutil.rmtree(out, ignore_errors=True)

    def fail(self, how: str, place: str, ended: Ended) -> None:
        self.counts[how] += 1
        self.failures.append(f"{place}: {how}, exit code {ended.code}\n{ended.said[-3000:]}")
        print(self.failures[-1], flush=True)


def outcome(name: str, out: Path, ended: Ended) -> str | dr3.UserError | None:
    """The result, or what is said of it; None where there is none."""
    if ended.code != 0:
        return None
    try:
        return result(name, out, ended)
    except dr3.UserError as mistake:
        return mistake


def result(name: str, out: Path, ended: Ended) -> str:
    """What counts of a command's outcome, as one number."""
    total = hashlib.sha256()
    if name == "evaluate":
        total.update(json.dumps(json.loads(ended.out), sort_keys=True).encode())
    elif name == "collect":
        total.update(dr3.load(out / "replay.npz").fingerprint().encode())
    elif name == "export":
        with np.load(out / "policy.npz") as arrays:
            for key in sorted(arrays.files):
                total.update(key.encode() + arrays[key].tobytes())
    else:
        runs = sorted(file.parent for file in out.rglob("config.json"))
        for run in runs:
            total.update(f"{run.relative_to(out)} {digest(Runs(run))}".encode())
        for file in sorted((out / "evidence").rglob("*.json")):
            total.update(file.name.encode())
    return total.hexdigest()


def damage(out: Path, chance: random.Random, place: float) -> str | None:
    """Flip a bit of a file, cut it, empty it, remove it, or lay a strange one beside it; which and how."""
    files = sorted(file for file in out.rglob("*") if file.is_file() and file.name != ".lock")
    if not files:
        return None
    file, how = files[int(place * len(files))], chance.choice(("bit", "cut", "empty", "remove", "stray"))
    content = bytearray(file.read_bytes())
    match how:
        case "bit" if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            file.write_bytes(content)
        case "cut":
            file.write_bytes(content[: chance.randrange(len(content) + 1)])
        case "empty":
            file.write_bytes(b"")
        case "remove":
            file.unlink()
        case _:
            (file.parent / f"stray-{file.name}").write_bytes(content)
    return f"{how} {file.relative_to(out)}"


def logged() -> dr3.Transitions:
    random_numbers = np.random.default_rng(0)
    rows = 200
    seen = random_numbers.normal(size=(rows + 1, 4)).astype(np.float32)
    columns = {
        "observations": seen[:-1],
        "next_observations": seen[1:],
        "actions": random_numbers.integers(3, size=rows),
    }
    columns |= {"rewards": random_numbers.normal(size=rows), "terminals": np.arange(rows) % 20 == 19}
    return assemble(columns, source="chaos", name="chaos")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--patience", type=float, default=10.0, help="minutes after which a command counts as hung")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="dr3-chaos-") as folder:
        chaos = Chaos(Path(folder), random.Random(seed), options.only, 60 * options.patience)
        number = 0
        while time.monotonic() < end:
            chaos.round(number)
            number += 1
    counts = chaos.counts
    troubles = ", ".join(f"{counts[trouble]} {trouble}" for trouble in TROUBLES)
    outcomes = f"{counts['same']} ended the same, {counts['said']} said what was damaged"
    bad = f"{counts['differed']} differed, {counts['broke']} broke"
    print(f"seed {seed}, {number} rounds ({troubles}): {outcomes}, {bad}")
    return 1 if chaos.failures else 0


if __name__ == "__main__":
    sys.exit(main())
