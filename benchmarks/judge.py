"""From seconds to tables: speeds, ratios, and the bars that they should clear."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import median

from rich.table import Table as RichTable

from shapes import ACTIONS, CONTROL, SHAPES, WITH_DR3, WITH_PICTURES

Seconds = dict[str, list[float]]
NAMES = {
    "q": "Q-learning",
    "q+dr3": "Q-learning + DR3",
    "q+label-noise": "Q-learning + label-noise DR3",
    "cql": "CQL",
}
PEERS = {"PyTorch": "PyTorch", "PyTorch tuned": "tuned", "d3rlpy": "d3rlpy"}
SQUARE_FLOPS = 2 * 2048**3


@dataclass(frozen=True)
class Table:
    """Rows of text that a terminal and a README both show."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def rich(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left")
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row, style="red" if any("missed" in cell for cell in row) else None)
        return table

    def markdown(self) -> str:
        lines = [self.header, tuple("---" if number == 0 else "---:" for number in range(len(self.header))), *self.rows]
        return f"**{self.title}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def speeds(seconds: Seconds, cores: int) -> Table:
    """Updates per second of all members together, and how many times a peer's that is."""
    rows = []
    for shape, sizes in SHAPES.items():
        for work, name in NAMES.items():
            for members in (1, 4):
                cells = [f"{sizes.title}, {name}, {members} member{'s' * (members > 1)}"]
                question = f"{cores} | {shape} | {work} | {members}"
                ours = seconds.get(f"dr3 | {question}")
                if ours is None:
                    continue
                cells.append(f"{members / median(ours):,.4g}")
                for peer in PEERS:
                    theirs = seconds.get(f"{peer} | {question}")
                    cells.append("" if theirs is None else f"{members / median(theirs):,.4g}")
                    cells.append("" if theirs is None else f"{ratio(theirs, ours):.2f}x")
                rows.append(tuple(cells))
    title = f"Updates per second on {cores} core{'s' * (cores > 1)}"
    return Table(title, ("", "dr3", *chain.from_iterable((name, "ratio") for name in PEERS.values())), rows)


def control_speeds(seconds: Seconds, columns: list[int]) -> Table:
    """Updates per second of continuous control, one member, beside d3rlpy's; from pictures, beside PyTorch's."""
    rows = []
    for cores in columns:
        for shape, sizes in CONTROL.items():
            ours = seconds.get(f"dr3 | {cores} | {shape} | q | 1")
            if ours is None:
                continue
            peer = "PyTorch" if shape in WITH_PICTURES else "d3rlpy control"
            theirs = seconds.get(f"{peer} | {cores} | {shape} | q | 1")
            if theirs is None:
                continue
            with_dr3 = seconds[f"dr3 | {cores} | {shape} | q+dr3 | 1"]
            cells = (f"{1 / median(side):,.4g}" for side in (ours, with_dr3, theirs))
            rows.append((f"{sizes.title}, {cores} core{'s' * (cores > 1)}", *cells, f"{ratio(theirs, ours):.2f}x"))
    return Table("Continuous control, updates per second", ("", "dr3", "with DR3", "peer", "ratio"), rows)


def bars(seconds: Seconds, columns: list[int], shapes: Collection[str]) -> Table:
    """Every bar of these shapes, with what was measured on one core and on all of them."""

    def over_pytorch(shape: str, work: str, members: int) -> Callable[[int], float]:
        return lambda cores: ratio(
            seconds[f"PyTorch | {cores} | {shape} | {work} | {members}"],
            seconds[f"dr3 | {cores} | {shape} | {work} | {members}"],
        )

    def cost(shape: str, work: str, base: str = "q") -> Callable[[int], float]:
        return lambda cores: ratio(
            seconds[f"dr3 | {cores} | {shape} | {work} | 1"], seconds[f"dr3 | {cores} | {shape} | {base} | 1"]
        )

    def four(shape: str) -> Callable[[int], float]:
        return lambda cores: ratio(
            seconds[f"dr3 | {cores} | {shape} | q+dr3 | 4"], seconds[f"dr3 | {cores} | {shape} | q+dr3 | 1"]
        )

    def of_peak(matmul: str, flops: int) -> Callable[[int], float]:
        def fraction(cores: int) -> float:
            peak, ours = seconds[f"dr3 | {cores} | mlp | {matmul} | 1"], seconds[f"dr3 | {cores} | mlp | q | 1"]
            return ratio(peak, ours) * mlp_flops() / flops

        return fraction

    mlp = SHAPES["mlp"]
    same = 2 * mlp.batch * mlp.hidden[0] * mlp.hidden[1]
    listed: list[tuple[str, str, Callable[[int], float], str, float]] = []  # of which shape, what, value, bar
    over = [
        ("minatar", "q", 3.0),
        ("minatar", "q+dr3", 3.0),
        ("mlp", "q", 1.0),
        ("mlp", "q+dr3", 1.0),
        ("nature", "q+dr3", 1.5),
    ]
    for shape, work, bar in over:
        what = f"{SHAPES[shape].title}, {NAMES[work]}, over PyTorch"
        for members in (1, 4):
            listed.append((shape, f"{what}, {members}", over_pytorch(shape, work, members), "≥", bar))
    listed += [
        (
            "mlp",
            "(1024, 1024) MLP, of the peak of 2048 x 2048 matmuls",
            of_peak("matmul-square", SQUARE_FLOPS),
            "≥",
            0.6,
        ),
        ("mlp", "(1024, 1024) MLP, of the peak of 256 x 1024 x 1024", of_peak("matmul-same", same), "≥", 0.6),
    ]
    for shape in WITH_DR3:
        sizes = SHAPES[shape]
        listed += [
            (shape, f"DR3 over the base update, {sizes.title}", cost(shape, "q+dr3"), "≤", 1.8),
            (shape, f"DR3 with stop-gradient over the base, {sizes.title}", cost(shape, "q+dr3-stop"), "≤", 1.35),
            (shape, f"4 members over one, {sizes.title} + DR3", four(shape), "≤", 4.0),
        ]

    def over_d3rlpy(shape: str) -> Callable[[int], float]:
        return lambda cores: ratio(
            seconds[f"d3rlpy control | {cores} | {shape} | q | 1"], seconds[f"dr3 | {cores} | {shape} | q | 1"]
        )

    def discrete_over_d3rlpy(cores: int) -> float:
        return ratio(seconds[f"d3rlpy | {cores} | minatar | cql | 4"], seconds[f"dr3 | {cores} | minatar | cql | 4"])

    def cql_of_peak(cores: int) -> float:
        peak, ours = seconds[f"dr3 | {cores} | mlp | matmul-square | 1"], seconds[f"dr3 | {cores} | cql | q | 1"]
        return ratio(peak, ours) * cql_flops() / SQUARE_FLOPS

    listed += [
        ("minatar", "Discrete CQL over d3rlpy, MinAtar CNN, 4", discrete_over_d3rlpy, "≥", 3.0),
        ("nature", "Label-noise DR3 over DR3, Nature CNN", cost("nature", "q+label-noise", "q+dr3"), "≤", 1.25),
        ("minatar", "LayerNorm over the base update, MinAtar CNN", cost("minatar", "q+layer-norm"), "≤", 1.15),
        ("minatar", "DR3 and BEER over DR3, MinAtar CNN", cost("minatar", "q+dr3+beer", "q+dr3"), "≤", 1.1),
        ("minatar", "Clipped targets over the base update, MinAtar CNN", cost("minatar", "q+clip"), "≤", 1.02),
        ("minatar", "HL-Gauss over the base update, MinAtar CNN", cost("minatar", "q+hl-gauss"), "≤", 1.3),
        ("sac", "SAC over d3rlpy", over_d3rlpy("sac"), "≥", 2.3),
        ("cog", "COG, strided encoder, over PyTorch", over_pytorch("cog", "q", 1), "≥", 1.5),
        ("cog", "COG + DR3, strided encoder, over PyTorch", over_pytorch("cog", "q+dr3", 1), "≥", 1.5),
        ("cql", "CQL over d3rlpy", over_d3rlpy("cql"), "≥", 1.3),
        ("cql", "DR3 over the base update, CQL", cost("cql", "q+dr3"), "≤", 1.1),
        ("cql", "CQL, of the peak of 2048 x 2048 matmuls", cql_of_peak, "≥", 0.5),
    ]
    rows = []
    for shape, name, measured, sense, bar in listed:
        if shape not in shapes:
            continue
        cells = [name, f"{sense} {bar:g}"]
        for cores in columns:
            try:
                value = measured(cores)
            except KeyError:  # not all that it is about was asked for
                break
            met = value >= bar if sense == "≥" else value <= bar
            cells.append(f"{value:.2f} {'met' if met else 'missed'}")
        if len(cells) == 2 + len(columns):
            rows.append(tuple(cells))
    return Table("Bars", ("", "bar", *(f"{n} core{'s' * (n > 1)}" for n in columns)), rows)


def ratio(above: list[float], below: list[float]) -> float:
    """Median over rounds; the two were measured in the same round, shortly after one another."""
    return median(a / b for a, b in zip(above, below, strict=True))


def mlp_flops() -> int:
    """Of one Q-learning update: s forward, s' forward, gradients of weights, gradients of inputs but the first's."""
    mlp = SHAPES["mlp"]
    sizes = (*mlp.observation, *mlp.hidden, ACTIONS)
    layers = [2 * mlp.batch * inputs * outputs for inputs, outputs in pairwise(sizes)]
    return 4 * sum(layers) - layers[0]


def cql_flops() -> int:
    """Of one CQL update, products only, the first layer's part for s counted once for all actions at s.

    Each critic: 3 · 10 sampled actions and the logged one, forward and backward (3 products a layer, 2 in the first);
    the target at one a'; the policy's own action, forward and backward to the action. The policy: s forward and
    backward, s' forward.
    """
    cql = CONTROL["cql"]
    inner = sum(2 * cql.batch * inputs * outputs for inputs, outputs in pairwise((*cql.hidden, 1)))
    of_state, of_action = (2 * cql.batch * size * cql.hidden[0] for size in (cql.observation[0], cql.actions))
    actions = 3 * cql.sampled_actions + 1
    learning = actions * (3 * inner + 2 * of_action) + 2 * of_state
    critic = learning + (inner + of_state + of_action) + (2 * inner + of_state + 2 * of_action)
    policy = 4 * sum(2 * cql.batch * a * b for a, b in pairwise((*cql.observation, *cql.hidden, 2 * cql.actions)))
    return 2 * critic + policy
