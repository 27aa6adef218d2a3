"""A table that is larger than the memory it may take: how fast it trains, and how much memory that needs.

    .venv/bin/python benchmarks/beyond_memory.py                       # 20 million rows of 50 floats; 15 GB of disk
    .venv/bin/python benchmarks/beyond_memory.py --rows 2000000 --folder scratch

Writes a Parquet file of made-up decisions, then trains DQN on it in two processes: with the table in memory, and
unpacked into a file of rows that is mapped. They train in turns, so that what disturbs the machine disturbs both.
Prints updates a second by the clock and processor time an update, the median of the ratios of the rounds (the bar: 0.8;
by processor time with --clock cpu, where other work goes on), and the most memory that each process ever had (the bar
of the mapped one: 1.5 GB), unpacking included.

With --resident-rows the side in memory has a shorter table, where the whole one would not leave enough memory to
others: that side is the faster for it, if anything. Weights are then not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

COLUMNS, LENGTH, ACTIONS = 50, 100, 4
BAR_SPEED, BAR_MEMORY = 0.8, 1.5e9
SCHEMA = {"observation": ["x*"], "action": "a", "reward": "r", "episode": "e", "time": "t", "terminal": "end"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--resident-rows", type=int, help="rows of the side in memory; by default as many")
    parser.add_argument("--updates", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side, of which the median counts")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="what the bar of speed is judged by")
    parser.add_argument("--folder", type=Path, default=None, help="where files go; by default one that is removed")
    parser.add_argument("--side", choices=("memory", "mapped"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure(options)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        options.folder = Path(folder)
        found = in_turns(options)
    print(f"{options.rows:,} rows of {COLUMNS} floats; DQN, two layers of 256, batches of 256")
    print(f"{options.rounds} rounds of {options.updates} updates")
    for side, one in found.items():
        print(
            f"{side:>7}: {options.updates / median(one['wall']):6.1f} updates/s, "
            f"{1e3 * median(one['cpu']) / options.updates:.2f} ms of processor time each; "
            f"{one['memory'] / 1e9:.2f} GB of memory at most; "
            f"{one['rows']:,} rows, {one['reading']:.0f} s of reading; weights {one['weights'][:12]}"
        )
    resident, mapped = found["memory"], found["mapped"]
    ratios = {
        clock: median([here / there for here, there in zip(resident[clock], mapped[clock], strict=True)])
        for clock in ("wall", "cpu")
    }
    by_clock, by_processor = ratios["wall"], ratios["cpu"]
    print(f"mapped / memory: {by_clock:.2f} of the speed by the clock, {by_processor:.2f} by processor time")
    fast, small = ratios[options.clock] >= BAR_SPEED, mapped["memory"] <= BAR_MEMORY
    print(f"by {options.clock} time it {'holds' if fast else 'misses'} the bar of {BAR_SPEED}")
    print(f"memory of the mapped one {'holds' if small else 'misses'} the bar of {BAR_MEMORY / 1e9} GB")
    same = mapped["weights"] == resident["weights"]
    if whole := mapped["rows"] == resident["rows"]:
        print(f"weights after all updates {'are equal' if same else 'DIFFER'}")
    sys.exit(0 if fast and small and (same or not whole) else 1)


def write(file: Path, rows: int) -> None:
    """Episodes of a hundred steps, every other one ended; one row group at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, 200_000):
        number = np.arange(start, min(start + 200_000, rows))
        columns = {f"x{place}": random.random(len(number), np.float32) for place in range(COLUMNS)}
        columns |= {"e": number // LENGTH, "t": number % LENGTH, "a": random.integers(ACTIONS, size=len(number))}
        columns |= {"r": random.random(len(number), np.float32)}
        columns |= {"end": (number % LENGTH == LENGTH - 1) & (number // LENGTH % 2 == 0)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(file, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def in_turns(options: argparse.Namespace) -> dict[str, dict]:
    """What both processes answer, round by round."""
    found: dict[str, dict] = {}
    with ExitStack() as stack:
        sides = {}
        for side in ("memory", "mapped"):
            rows = (options.resident_rows if side == "memory" else None) or options.rows
            file = options.folder / f"log-{rows}.parquet"
            if not file.exists():
                write(file, rows)
            words = [sys.executable, __file__, "--side", side, "--folder", str(file), "--updates", str(options.updates)]
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            sides[side] = stack.enter_context(process)
            found[side] = {**answer(process), "wall": [], "cpu": []}
        for number in range(options.rounds):
            for side in sorted(sides, reverse=bool(number % 2)):
                ask = sides[side].stdin
                assert ask is not None
                ask.write("go\n")
                ask.flush()
                one = answer(sides[side])
                found[side] |= {name: one[name] for name in ("memory", "weights")}
                for clock in ("wall", "cpu"):
                    found[side][clock].append(one[clock])
                took = f"{one['wall']:.1f} s, {one['cpu']:.1f} s of processor time, {one['memory'] / 1e9:.2f} GB"
                print(f"round {number + 1}, {side}: {took}", file=sys.stderr, flush=True)
    return found


def answer(process: subprocess.Popen[str]) -> dict:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("A side of the benchmark stopped; what it said is above.")


def measure(options: argparse.Namespace) -> None:
    """Reads, says so, then makes updates each time it is told to, by the loop that `dr3.train` runs."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import dr3
    import dr3.data.row_cache
    from dr3.methods import Spec
    from dr3.runs.member import Member
    from dr3.training.feed import Feed
    from dr3.training.loop import advance, begin

    file = options.folder
    began, mapped = time.perf_counter(), options.side == "mapped"
    if not mapped:
        dr3.data.row_cache.MEMORY_SHARE = 1.0  # in memory, however large
    data = dr3.data.read_table(file, schema=SCHEMA, cache=file.with_suffix(".cache") if mapped else None)
    data.fingerprint()
    reading = time.perf_counter() - began
    member = Member(dr3.DQN(hidden=(256, 256), batch_size=256), None, 0)
    method, _, seed = traced = jax.tree.map(jnp.asarray, (member.method, member.regularizer, np.uint32(member.seed)))
    with Feed([member], data, "host" if mapped else "device") as feed:
        progress, step = begin(method, seed, Spec.of(data)), 0

        def update(updates: int) -> None:
            nonlocal progress, step
            stop = step + updates
            while step < stop:
                reach = feed.reaches(step, stop)
                progress = advance(*traced, progress, feed.at(0, step), jnp.int32(reach))
                assert bool(progress.finite)  # which waits for the updates, as training does
                step = reach

        update(256)  # everything is compiled after this
        print(json.dumps({"reading": reading, "rows": len(data)}), flush=True)
        for _ in sys.stdin:
            start, busy = time.perf_counter(), time.process_time()
            update(options.updates)
            wall, cpu = time.perf_counter() - start, time.process_time() - busy
            leaves = jax.tree.leaves(method.model(progress.learner))
            weights = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
            print(json.dumps({"wall": wall, "cpu": cpu, "memory": peak_memory(), "weights": weights}), flush=True)


def peak_memory() -> int:
    """The most that was resident since the program began, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
