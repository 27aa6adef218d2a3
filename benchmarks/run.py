"""Updates per second of dr3, of the same update in PyTorch, and of d3rlpy's methods, side by side in one run.

    .venv/bin/python benchmarks/run.py --peer .venv-peers/bin/python

Every side is a process that answers "how long do n updates take?". A round asks all sides everything, one after the
other, so that whatever disturbs the machine disturbs all; a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import track

from judge import bars, control_speeds, speeds
from shapes import CONTROL, SHAPES, WITH_DR3, WITH_PICTURES
from sides import KEEPS_MEMORY, Side, versions

HERE = Path(__file__).parent
RESULTS = HERE / "results"
MEMBERS = (1, 4)
PEAKS = ("matmul-square", "matmul-same")  # whatever else is asked: bars are held against them
REMEDIES = ("q+layer-norm", "q+dr3+beer", "q+clip", "q+hl-gauss")
DISCRETE_CQL = [("minatar", "cql", members) for members in MEMBERS]


def questions(side: str) -> list[tuple[str, str, int]]:
    """(shape, work, members) that a side is asked. d3rlpy has no DR3; the costs of DR3 are our own matter."""
    if side == "d3rlpy control":
        return [(shape, "q", 1) for shape in CONTROL if shape not in WITH_PICTURES]
    if side == "d3rlpy":
        shapes = [shape for shape, sizes in SHAPES.items() if not sizes.same_padding]
        return [*((shape, "q", members) for shape in shapes for members in MEMBERS), *DISCRETE_CQL]
    both = [(shape, "q", members) for shape in SHAPES for members in MEMBERS]
    both += [(shape, "q+dr3", members) for shape in WITH_DR3 for members in MEMBERS]
    if side in ("PyTorch", "PyTorch tuned"):
        return both + [(shape, work, 1) for shape in WITH_PICTURES for work in ("q", "q+dr3")]
    peaks = [("mlp", peak, 1) for peak in PEAKS]
    control = [(shape, work, 1) for shape in CONTROL for work in ("q", "q+dr3")]
    costs = [*((shape, "q+dr3-stop", 1) for shape in WITH_DR3), ("nature", "q+label-noise", 1)]
    costs += [("minatar", work, 1) for work in REMEDIES]
    return [*both, *DISCRETE_CQL, *costs, *peaks, *control]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--peer", default=".venv-peers/bin/python", help="a Python that has torch and d3rlpy; none: no peers"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is asked")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="how long an answer should take: a chunk of dr3.train is a second"
    )
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="cpu: processor seconds on one core only, for a machine that has other work",
    )
    everything = (*SHAPES, *CONTROL)
    parser.add_argument(
        "--shapes", nargs="+", choices=everything, default=everything, help="only these, and their bars"
    )
    parser.add_argument("--works", nargs="+", help="only these, such as q q+dr3 q+layer-norm, each with one member")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    start, load, console = time.perf_counter(), os.getloadavg(), Console()

    def is_asked(shape: str, work: str, members: int) -> bool:
        if arguments.works is not None:
            return shape in arguments.shapes and work in arguments.works and members == 1
        return shape in arguments.shapes or work in PEAKS

    everywhere = sorted(os.sched_getaffinity(0))
    columns = {1: everywhere[:1]}
    if arguments.clock == "wall":
        columns[len(everywhere)] = everywhere
    seconds: dict[str, list[float]] = {}  # "side | cores | shape | work | members" -> per unit of work, one per round
    for count, cores in columns.items():
        sides = [
            Side("dr3", None, HERE / "ours.py", cores, RESULTS),
            Side("PyTorch", arguments.peer, HERE / "peers" / "pytorch.py", cores, RESULTS),
            Side(
                "PyTorch tuned",
                arguments.peer,
                HERE / "peers" / "pytorch.py",
                cores,
                RESULTS,
                "fused",
                settings=KEEPS_MEMORY,
            ),
            Side("d3rlpy", arguments.peer, HERE / "peers" / "d3rlpy_dqn.py", cores, RESULTS),
            Side("d3rlpy control", arguments.peer, HERE / "peers" / "d3rlpy_control.py", cores, RESULTS),
        ]
        if arguments.peer == "none":
            sides = sides[:1]
        asked = [(side, *question) for shape in everything for side in sides for question in questions(side.name)
                 if question[0] == shape and is_asked(*question)]  # fmt: skip
        text = f"{count} core{'s' * (count > 1)}"
        times = {}
        for side, *question in track(asked, f"Warming up on {text}", console=console, transient=True):
            times[side.name, *question] = side.calibrate(*question, arguments.seconds)
        for _ in track(range(arguments.rounds), f"Measuring on {text}", console=console, transient=True):
            for side, *question in asked:
                number = times[side.name, *question]
                key = " | ".join(map(str, (side.name, count, *question)))
                seconds.setdefault(key, []).append(side.ask(*question, number, arguments.clock) / number)
        for side in sides:
            side.close()

    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "clock": arguments.clock,
        "cores": len(everywhere),
        "load_before": load,
        "load_after": os.getloadavg(),
        "rounds": arguments.rounds,
        "wall_seconds": time.perf_counter() - start,
        "versions": versions(None, "jax", "jaxlib", "equinox", "optax", "numpy")
        | ({} if arguments.peer == "none" else versions(arguments.peer, "torch", "d3rlpy")),
        "median_seconds": {key: median(values) for key, values in seconds.items()},
        "seconds": seconds,
    }
    (RESULTS / "speed.json").write_text(json.dumps(record, indent=1) + "\n")
    tables = [speeds(seconds, count) for count in columns]
    tables += [control_speeds(seconds, list(columns)), bars(seconds, list(columns), arguments.shapes)]
    tables = [table for table in tables if table.rows]
    for table in tables:
        console.print(table.rich())
        console.print()
    text = "\n".join(table.markdown() for table in tables)
    (RESULTS / "speed.md").write_text(text)
    console.print(f"{record['wall_seconds']:.0f} s; load {load[0]:.1f} before. Numbers: {RESULTS / 'speed.json'}")


if __name__ == "__main__":
    main()
