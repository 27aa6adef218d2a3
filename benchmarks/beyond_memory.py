"""A table that is larger than the memory it may take: how fast it trains, and how much memory that needs.

    .venv/bin/python benchmarks/beyond_memory.py                       # 20 million rows of 50 floats; 15 GB of disk
    .venv/bin/python benchmarks/beyond_memory.py --rows 2000000 --folder scratch

Writes a Parquet file of made-up decisions, then trains DQN on it in two processes, one after the other: with the table
in memory, and unpacked into a file of rows that is mapped. Prints updates a second of both, the ratio (the bar: 0.8),
and the most memory that each process ever had (the bar of the mapped one: 1.5 GB), unpacking included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS, LENGTH, ACTIONS = 50, 100, 4
BAR_SPEED, BAR_MEMORY = 0.8, 1.5e9
SCHEMA = {"observation": ["x*"], "action": "a", "reward": "r", "episode": "e", "time": "t", "terminal": "end"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--updates", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, of which the median counts")
    parser.add_argument("--folder", type=Path, default=None, help="where files go; by default one that is removed")
    parser.add_argument("--side", choices=("memory", "mapped"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure(options)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        options.folder = Path(folder)
        write(options.folder / "log.parquet", options.rows)
        found = {side: run(options, side) for side in ("memory", "mapped")}
    ratio = found["mapped"]["speed"] / found["memory"]["speed"]
    print(f"{options.rows:,} rows of {COLUMNS} floats; DQN, two layers of 256, batches of 256")
    for side, one in found.items():
        print(
            f"{side:>7}: {one['speed']:6.1f} updates/s, {1e3 * one['cpu']:.2f} ms of processor time each; "
            f"{one['memory'] / 1e9:.2f} GB of memory at most; "
            f"{one['reading']:.0f} s of reading; digest {one['digest'][:12]}"
        )
    fast, small = ratio >= BAR_SPEED, found["mapped"]["memory"] <= BAR_MEMORY
    same = found["mapped"]["digest"] == found["memory"]["digest"]
    print(f"mapped / memory: {ratio:.2f} of the speed ({'holds' if fast else 'misses'} the bar of {BAR_SPEED})")
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


def run(options: argparse.Namespace, side: str) -> dict:
    words = [sys.executable, __file__, "--side", side, "--folder", str(options.folder), "--rows", str(options.rows)]
    words += ["--updates", str(options.updates), "--rounds", str(options.rounds)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(options: argparse.Namespace) -> dict:
    """Two lengths of one run, and the time between their ends: what starting costs is in both."""
    import numpy as np

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
    speeds, costs, digest = [], [], ""

    def train(steps: int, name: str) -> tuple[float, float]:
        nonlocal digest
        start, busy = time.perf_counter(), time.process_time()
        out = options.folder / options.side / name
        runs = dr3.train(
            data, method, steps=steps, metrics_every=10**6, evaluate_every=10**6, out=out,
            data_on="host" if mapped else "device", progress=False,
        )  # fmt: skip
        digest = dr3.digest(runs)
        return time.perf_counter() - start, time.process_time() - busy

    train(64, "warm")
    for number in range(options.rounds):
        few, many = (train(count, f"{number}-{count}") for count in (64, 64 + options.updates))
        speeds.append(options.updates / (many[0] - few[0]))
        costs.append((many[1] - few[1]) / options.updates)
    return {
        "speed": float(np.median(speeds)),
        "cpu": float(np.median(costs)),
        "memory": peak_memory(),
        "reading": reading,
        "digest": digest,
    }


def peak_memory() -> int:
    """The most that was resident since the program began, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
