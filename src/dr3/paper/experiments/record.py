"""The record of a reproduction as one page: for every figure and table what is claimed, what came out, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from dr3.errors import UserError
from dr3.files import write_text
from dr3.paper.experiments.catalogue import ALL, EXPERIMENTS, OPEN_QUESTIONS
from dr3.paper.experiments.declaration import Answer, Experiment, Row, Scale
from dr3.paper.experiments.result import Result, reasons
from dr3.paper.experiments.running import Plan, judged

PICTURES = Path("images") / "reproduction"  # beside the page


def write_record(file: Path, plan: Plan) -> dict[str, Result]:
    """Write the page from evidence alone, with pictures beside it; the results that there is evidence for.

    What has no evidence is named on it.
    """
    results = {result.id: result for result in judged(plan) if not result.unrun}
    if not results:
        raise UserError(f"There is no evidence of {plan.scale} scale in {plan.evidence}; dr3 reproduce makes it.")
    pictures = file.parent / PICTURES
    for experiment in plan.experiments:
        result = results.get(experiment.id)
        if result is not None and result.picture is not None:
            pictures.mkdir(parents=True, exist_ok=True)
            _copy_small(plan.folder(experiment) / result.picture, pictures / f"{experiment.id}.png")
    write_text(file, "\n".join(_lines(results, plan.scale)) + "\n")
    return results


def _copy_small(picture: Path, copy: Path) -> None:
    """In 256 colours, a fraction of the bytes: forty pictures lie beside the page.

    Not fewer: with 32 the thin lines of two seeds, blue and green, became one colour.
    """
    from PIL import Image

    with Image.open(picture) as image:
        image.convert("RGB").quantize(256).save(copy, optimize=True)


def _lines(results: dict[str, Result], scale: Scale) -> list[str]:
    """An overview, what is the same for many, and then a section for each."""
    settings = _shared_notes(results)
    count = Counter("no evidence" if id not in results else results[id].verdict for id in EXPERIMENTS)
    shown = [id for id in EXPERIMENTS if id in results and results[id].verdict == "shows"]
    lines = [
        "# The reproduction record",
        "",
        f"Written by `dr3 reproduce --scale {scale} --record docs/reproduction.md` from the evidence that "
        f"`dr3 reproduce --all --scale {scale}` leaves. What it says and why, in short, is in "
        "[reproduce.md](reproduce.md), with the rules behind the verdicts.",
        "",
        f"Of {len(EXPERIMENTS)} figures and tables {count['shows']} show what the paper claims, "
        f"{count['does not show']} do not, for {count['precondition not met']} a precondition is not met, "
        f"{count['cannot be compared']} cannot be compared, and {count['no evidence']} have no evidence yet. "
        "Numbers in brackets are 95 % intervals. Times add up all runs behind a verdict, also those that others share.",
    ]
    if shown:
        lines += ["", f"What shows: {', '.join(_link(id) for id in shown)}."]
    lines += _overview("the paper's claim", {id: one for id, one in EXPERIMENTS.items() if id in results}, results)
    if questions := {id: one for id, one in OPEN_QUESTIONS.items() if id in results}:
        lines += ["", "Questions that the paper leaves:", *_overview("what is asked", questions, results)]
    if absent := [id for id in ALL if id not in results]:
        lines += ["", f"Without evidence yet (`dr3 reproduce ID --scale {scale}` makes it): {', '.join(absent)}."]
    for note, letter in settings.items():
        lines += ["", f"## Setting {letter}", "", note]
    for id, experiment in ALL.items():
        if id in results:
            lines += _section(experiment, results[id], settings)
    return lines


def _overview(claim: str, experiments: Mapping[str, Experiment], results: dict[str, Result]) -> list[str]:
    """A table with a row for each."""
    lines = ["", f"| | {claim} | verdict | what stands against it |", "|---|---|---|---|"] if experiments else []
    for id, experiment in experiments.items():
        verdict = results[id].verdict
        verdict = f"**{verdict}**" if verdict == "shows" else verdict
        lines.append(f"| {_link(id)} | {_cell(experiment.claim)} | {verdict} | {_cell(_why(results[id]))} |")
    return lines


def _shared_notes(results: dict[str, Result]) -> dict[str, str]:
    """What stands in for what, where several say the same: {note: letter}."""
    counts = Counter(result.note for result in results.values() if result.note)
    shared = [note for note, count in counts.items() if count > 1]
    return dict(zip(shared, ascii_uppercase, strict=False))


def _section(experiment: Experiment, result: Result, settings: dict[str, str]) -> list[str]:
    label = f" (`{experiment.label}`)" if experiment.label else ""
    lines = ["", f"## {experiment.id}", "", f"**{experiment.title}**{label}", ""]
    lines += [f"{'The paper' if label else 'The claim'}: {experiment.claim} {_sentence(experiment.printed)}"]
    why = _why(result) if not result.answers else ""  # else the checks below say it
    lines += ["", f"**{result.verdict}**" + (f": {_sentence(why)}" if why else ".")]
    if result.picture is not None:
        lines += ["", f"![{experiment.title}]({PICTURES.as_posix()}/{experiment.id}.png)"]
    if result.answers:
        checks = sorted(result.answers, key=lambda one: one.shows)
        lines += ["", *(f"- {_check(one)}" for one in checks)]
    lines += _numbers(result.rows)
    sizes = ", ".join(f"{count:,} {what}" for what, count in result.sizes.items() if count)
    made = f"`{result.command}`: {_time(result.seconds)}" + (f" ({sizes})." if sizes else ".")
    note = result.note
    if note in settings:
        note = f"[Setting {settings[note]}](#setting-{settings[note].lower()})."
    return [*lines, "", " ".join(filter(None, [note, made]))]


def _check(answer: Answer) -> str:
    verdict = answer.verdict if answer.shows else f"**{answer.verdict}**"
    group = f"{answer.group}: " if answer.group else ""
    return f"{verdict}: {group}{answer.rule} {answer.sentence}"


def _why(result: Result) -> str:
    """What stands against the claim: the checks that failed, in a few words, or why there was nothing to check."""
    if result.verdict in ("does not show", "precondition not met"):
        return reasons(result.answers)
    return result.why[:1].upper() + result.why[1:]


def _numbers(rows: Sequence[Row]) -> list[str]:
    """Ours beside the paper's; where each of some has each of some measures, a column for each measure."""
    ours = [row for row in rows if row.ours is not None]
    absent = [row for row in rows if row.ours is None]
    lines = []
    if ours:
        parts = [row.what.partition(", ")[::2] for row in ours]
        heads, measures = (list(dict.fromkeys(side)) for side in zip(*parts, strict=True))
        if len(heads) * len(measures) != len(ours):
            parts = [(row.what, "") for row in ours]
            heads, measures = [row.what for row in ours], [""]
        found = dict(zip(parts, ours, strict=True))
        sides = [
            (measure, side)
            for measure in measures
            for side in ("paper", "ours")
            if any(getattr(found[head, measure], side) is not None for head in heads)
        ]
        several = len(measures) > 1
        names = {"paper": "the paper", "ours": "here"}
        columns = [_cell(f"{measure}: {names[side]}" if several else names[side]) for measure, side in sides]
        lines += ["", f"| {'' if several else _cell(measures[0])} | {' | '.join(columns)} |"]
        lines += ["|---|" + "---|" * len(columns)]
        for head in heads:
            cells = [_cell(getattr(found[head, measure], side) or "") for measure, side in sides]
            lines.append(f"| {_cell(head)} | {' | '.join(cells)} |")
    elsewhere = [row for row in absent if row.what.startswith("not run here")]
    lines += [line for row in elsewhere for line in ("", f"{row.what[0].upper()}{row.what[1:]} (`{row.paper}`).")]
    if left := len(absent) - len(elsewhere):
        words = "1 number of the paper alone is" if left == 1 else f"{left} numbers of the paper alone are"
        lines += ["", f"{words} left out: the HTML report has them."]
    return lines


def _link(id: str) -> str:
    return f"[{id}](#{id.lower().replace('.', '')})"


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
