"""The record of a reproduction as one page: for every figure and table what is claimed, what came out, and how."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dr3.errors import UserError
from dr3.files import write_text
from dr3.paper.experiments.catalogue import EXPERIMENTS
from dr3.paper.experiments.declaration import Experiment, Scale
from dr3.paper.experiments.result import Result

PICTURES = Path("images") / "reproduction"  # beside the page


def write_record(file: Path, out: Path, scale: Scale) -> dict[str, Result]:
    """Write the page from the results under `out`, with copies of their pictures; the results that were there.

    What was not run is on it too.
    """
    results = {}
    for id in EXPERIMENTS:
        result = Result.read(out / scale / id)
        if result is not None:
            results[id] = result
    if not results:
        raise UserError(f"There are no results of {scale} scale in {out}; dr3 reproduce makes them.")
    pictures = file.parent / PICTURES
    for id, result in results.items():
        if result.picture is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            _copy_small(out / scale / id / result.picture, pictures / f"{id}.png")
    write_text(file, "\n".join(_lines(results, scale)) + "\n")
    return results


def _copy_small(picture: Path, copy: Path) -> None:
    """In 32 colours, a fraction of the bytes: forty pictures lie beside the page, and lines need no more."""
    from PIL import Image

    with Image.open(picture) as image:
        image.convert("RGB").quantize(32).save(copy, optimize=True)


def _lines(results: dict[str, Result], scale: Scale) -> list[str]:
    counts = Counter(result.verdict for result in results.values())
    lines = [
        "# The reproduction record",
        "",
        f"Written by `dr3 reproduce --scale {scale} --record docs/reproduction.md` from what "
        f"`dr3 reproduce --all --scale {scale}` left behind; how to read it is in [reproduce.md](reproduce.md).",
        "",
        f"Of {len(EXPERIMENTS)} figures and tables {counts['shows']} show what the paper claims, "
        f"{counts['does not show']} do not, {counts['cannot be compared']} cannot be compared, and "
        f"{len(EXPERIMENTS) - len(results)} were not run. Times add up all runs behind a verdict, also those that "
        "others share.",
        "",
        "| | claim | verdict | time |",
        "|---|---|---|---|",
    ]
    for experiment in EXPERIMENTS.values():
        result = results.get(experiment.id)
        verdict, time = ("not run", "") if result is None else (result.verdict, _time(result.seconds))
        anchor = experiment.id.lower().replace(".", "")
        lines.append(f"| [{experiment.id}](#{anchor}) | {_cell(experiment.claim)} | {verdict} | {time} |")
    for experiment in EXPERIMENTS.values():
        lines += _section(experiment, results.get(experiment.id))
    return lines


def _section(experiment: Experiment, result: Result | None) -> list[str]:
    lines = ["", f"## {experiment.id}", "", f"**{experiment.title}** (`{experiment.label}`)", ""]
    lines += [f"The paper: {experiment.claim} {_sentence(experiment.printed)}", ""]
    if result is None:
        return [*lines, f"Not run: `dr3 reproduce {experiment.id}`."]
    lines += [f"**{result.verdict}**" + (f": {_sentence(result.why)}" if result.why else "."), ""]
    lines += [f"- {'holds' if one.holds else '**does not hold**'}: {one.rule} {one.sentence}" for one in result.answers]
    if result.rows:
        lines += ["", "| | the paper | here |", "|---|---|---|"]
        lines += [f"| {_cell(row.what)} | {_cell(row.paper or '')} | {_cell(row.ours or '')} |" for row in result.rows]
    if result.picture is not None:
        lines += ["", f"![{experiment.title}]({PICTURES.as_posix()}/{experiment.id}.png)"]
    sizes = ", ".join(f"{count:,} {what}" for what, count in result.sizes.items() if count)
    lines += [
        "",
        " ".join(filter(None, [result.note, f"`{result.command}`: {_time(result.seconds)}"]))
        + (f" ({sizes})." if sizes else "."),
    ]
    return lines


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
