"""The doctor's verdicts as the first thing a report says, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dr3.diagnostics.health import HEALTHY, MemberHealth, Verdict
from dr3.reports.content import Reading
from dr3.reports.groups import Group
from dr3.reports.markup import Html, join, tag
from dr3.reports.svg import colour_class


def verdicts(readings: Sequence[Reading], groups: Sequence[Group]) -> Html:
    """The headline, then a card for each group."""
    judged = [member for reading in readings if reading.health for member in reading.health.members]
    notes = [tag("p", reading.note, class_="soft") for reading in readings if reading.note]
    if not judged:
        return join([tag("h2", "Health"), tag("p", "No verdicts.", class_="headline"), *notes])
    cards = [_card(number, group, readings) for number, group in enumerate(groups)]
    return join(
        [
            tag("h2", "Health"),
            tag("p", headline(judged), class_="headline"),
            tag("p", _basis(readings), class_="soft"),
            *notes,
            tag("div", *cards, class_="cards"),
        ]
    )


def headline(judged: Sequence[MemberHealth]) -> str:
    """One sentence on all critics."""
    ill, everyone = sum(not member.healthy for member in judged), len(judged)
    if everyone == 1:
        return "The critic shows signs of trouble." if ill else "The critic looks healthy."
    if not ill:
        return f"All {everyone} critics look healthy."
    return f"{'All' if ill == everyone else f'{ill} of'} {everyone} critics show signs of trouble."


def _basis(readings: Sequence[Reading]) -> str:
    steps = dict.fromkeys(int(one.health.measurements.steps[-1]) for one in readings if one.health)
    rows = dict.fromkeys(one.health.measurements.rows for one in readings if one.health)
    return (
        f"A verdict is about the last checkpoint that was measured (step {' and '.join(f'{s:,}' for s in steps)}), "
        f"on {' and '.join(f'{n:,}' for n in rows)} rows of the data.{_not_looked_at(readings)}"
    )


def _not_looked_at(readings: Sequence[Reading]) -> str:
    names = dict.fromkeys(name for one in readings if one.health for name in one.health.not_looked_at)
    return f" Not looked at: {', '.join(names)}." if names else ""


def _card(number: int, group: Group, readings: Sequence[Reading]) -> Html:
    members = [
        (seed, health.members[member])
        for (run, member), seed in zip(group.members, group.seeds, strict=True)
        if (health := readings[run].health) is not None
    ]
    ill = sum(not member.healthy for _, member in members)
    badge = tag("span", "healthy", class_="badge good")
    if ill:
        badge = tag("span", f"{ill} of {len(members)} with signs", class_="badge bad")
    elif not members:
        badge = tag("span", "no verdict", class_="badge")
    colour = colour_class(number).partition(" ")[2]
    heading = tag("header", tag("h3", tag("span", class_=f"swatch {colour}"), group.name), badge)
    body = [_verdict(name, found) for name, found in _by_name((seed, one.verdicts) for seed, one in members).items()]
    if members and not ill:
        body = [tag("p", HEALTHY, class_="soft")]
    body += [_note(name, found) for name, found in _by_name((seed, one.notes) for seed, one in members).items()]
    return tag("article", heading, *body, _each(number, members) if ill else None, class_="card")


def _by_name(said: Iterable[tuple[int, Sequence[Verdict]]]) -> dict[str, list[tuple[int, Verdict]]]:
    found: dict[str, list[tuple[int, Verdict]]] = {}
    for seed, verdicts in said:
        for verdict in verdicts:
            found.setdefault(verdict.name, []).append((seed, verdict))
    return found


def _verdict(name: str, found: Sequence[tuple[int, Verdict]]) -> Html:
    """One sign, in the words of the seed in which it began first."""
    _, first = min(found, key=lambda pair: pair[1].since)
    seeds = ", ".join(str(seed) for seed, _ in found)
    where = f"Seed {seeds}, since" if len(found) == 1 else f"Seeds {seeds}, the first since"
    return tag(
        "div",
        tag("h4", name),
        tag("p", " ".join(filter(None, [first.sentence, first.shown]))),
        tag("p", f"{where} step {first.since:,}.", class_="when"),
        tag("p", first.advice),
        class_="verdict",
    )


def _note(name: str, found: Sequence[tuple[int, Verdict]]) -> Html:
    """What is measured and judges nothing, in the words of the first seed."""
    seeds = f"seed{'s' if len(found) > 1 else ''} {', '.join(str(seed) for seed, _ in found)}"
    return tag("p", f"Note ({name}, {seeds}), no sign of ill health by itself: {found[0][1].sentence}", class_="soft")


def _each(number: int, members: Sequence[tuple[int, MemberHealth]]) -> Html:
    entries = []
    for seed, member in members:
        entries.append(tag("dt", f"Seed {seed}"))
        entries += [tag("dd", line.strip()) for line in str(member).splitlines()]
    return tag("details", tag("summary", "Each critic"), tag("dl", *entries), id=f"each-{number}")
