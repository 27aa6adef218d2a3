"""A table that is larger than the memory it may take: how fast it trains, and how much memory that needs.

    .venv/bin/python benchmarks/beyond_memory.py                       # 20 million rows of 50 floats; 15 GB of disk
    .venv/bin/python benchmarks/beyond_memory.py --rows 2000000 --folder scratch

Writes a Parquet file of made-up decisions, then trains DQN on it in two processes: with the table in memory, and
unpacked into a file of rows that is mapped. Both read one after the other, then they train in turns, so that what
disturbs the machine disturbs both. Prints updates a second by the clock and processor time an update, the median of
the ratios of the rounds (the bar: 0.8; by processor time with --clock cpu, where other work goes on), and the most
memory that each process ever had (the bar of the mapped one: 1.5 GB), unpacking included.
"""

from __future__ import annotations

import argparse
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
        write(options.folder / "log.parquet", options.rows)
        found = in_turns(options)
    print(f"{options.rows:,} rows of {COLUMNS} floats; DQN, two layers of 256, batches of 256")
    print(f"{options.rounds} rounds of {options.updates} updates")
    for side, one in found.items():
        print(
            f"{side:>7}: {options.updates / median(one['wall']):6.1f} updates/s, "
            f"{1e3 * median(one['cpu']) / options.updates:.2f} ms of processor time each; "
            f"{one['memory'] / 1e9:.2f} GB of memory at most; "
            f"{one['reading']:.0f} s of reading; digest {one['digest'][:12]}"
        )
    ratios = {
        clock: median(
            [here / there for here, there in zip(found["memory"][clock], found["mapped"][clock], strict=True)]
        )
        for clock in ("wall", "cpu")
    }
    fast, small = ratios[options.clock] >= BAR_SPEED, found["mapped"]["memory"] <= BAR_MEMORY
    same = found["mapped"]["digest"] == found["memory"]["digest"]
    by_clock, by_processor = ratios["wall"], ratios["cpu"]
    print(f"mapped / memory: {by_clock:.2f} of the speed by the clock, {by_processor:.2f} by processor time")
    print(f"by {options.clock} time it {'holds' if fast else 'misses'} the bar of {BAR_SPEED}")
    print(f"memory of the mapped one {'holds' if small else 'misses'} the bar of {BAR_MEMORY / 1e9} GB")
    print(f"digests {'are equal' if same else 'DIFFER'}")
    sys.exit(0 if fast and small and same else 1)


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
        writer = writer or pq.ParquetWriter(file, table.schema, compression="none")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def in_turns(options: argparse.Namespace) -> dict[str, dict]:
    """What both processes answer, round by round."""
    found: dict[str, dict] = {}
    with ExitStack() as stack:
        sides = {}
        for side in ("memory", "mapped"):
            words = [sys.executable, __file__, "--side", side, "--folder", str(options.folder)]
            process = subprocess.Popen(
                [*words, "--updates", str(options.updates)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            sides[side] = stack.enter_context(process)
            found[side] = {**answer(process), "wall": [], "cpu": []}
        for number in range(options.rounds):
            for side in sorted(sides, reverse=bool(number % 2)):
                ask = sides[side].stdin
                assert ask is not None
                ask.write("go\n")
                ask.flush()
                one = answer(sides[side])
                found[side] |= {name: one[name] for name in ("memory", "digest")}
                for clock in ("wall", "cpu"):
                    found[side][clock].append(one[clock])
                print(
                    f"round {number + 1}, {side}: {one['wall']:.1f} s, {one['cpu']:.1f} s of processor time",
                    file=sys.stderr,
                )
    return found


def answer(process: subprocess.Popen[str]) -> dict:
    assert process.stdout is not None
    while line := process.stdout.readline():
        if line.startswith("{"):
            return json.loads(line)
    raise SystemExit("A side of the benchmark stopped; what it said is above.")


def measure(options: argparse.Namespace) -> None:
    """Reads, says so, then makes updates each time it is told to.

    Every answer is the time between the ends of two lengths of one run: what starting costs is in both.
    """
    import dr3

    file, cache = options.folder / "log.parquet", options.folder / "cache"
    began = time.perf_counter()
    mapped = options.side == "mapped"
    if mapped:
        data = dr3.data.read_table(file, schema=SCHEMA, cache=cache)
    else:
        import dr3.data.row_cache

        dr3.data.row_cache.MEMORY_SHARE = 1.0  # in memory, however large
        data = dr3.data.read_table(file, schema=SCHEMA)
    data.fingerprint()
    reading = time.perf_counter() - began
    method = dr3.DQN(hidden=(256, 256), batch_size=256)

    def train(steps: int, name: str) -> tuple[float, float, str]:
        start, busy = time.perf_counter(), time.process_time()
        out = options.folder / options.side / name
        runs = dr3.train(
            data, method, steps=steps, metrics_every=10**6, evaluate_every=10**6, out=out,
            data_on="host" if mapped else "device", progress=False,
        )  # fmt: skip
        return time.perf_counter() - start, time.process_time() - busy, dr3.digest(runs)

    train(64, "warm")
    print(json.dumps({"reading": reading}), flush=True)
    for number, _ in enumerate(sys.stdin):
        few, many = (train(count, f"{number}-{count}") for count in (64, 64 + options.updates))
        wall, cpu = many[0] - few[0], many[1] - few[1]
        print(json.dumps({"wall": wall, "cpu": cpu, "memory": peak_memory(), "digest": many[2]}), flush=True)


def peak_memory() -> int:
    """The most that was resident since the program began, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
