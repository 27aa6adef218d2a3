"""Claims in the text, and settings that the paper states in two places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dr3.paper.auditing.line import HALF_DIGIT, AuditLine
from dr3.paper.presets import ATARI_DATA, D4RL, TUNING_GAMES, AtariSettings, CQLWeights
from dr3.paper.tables import table


def claims_in_the_text() -> Iterator[AuditLine]:
    section = "Claims in the text"
    for claim, percent, name, base, better, measure in (
        ("CQL+DR3 has 25% better average performance", 25.0, "atari-iqm-average", "CQL", "CQL+DR3", "average"),
        ("CQL+DR3 has 20% better final performance", 20.0, "atari-iqm-final", "CQL", "CQL+DR3", "final"),
        ("CQL+DR3 has 31.5% better median score", 31.5, "atari-median", "CQL", "CQL+DR3", "average"),
        ("REM+Δ' is about 130% better than REM", 130.0, "atari-stop-gradient", "REM", "REM+Δ'", "average"),
    ):
        before, after = table(name).means(base, measure), table(name).means(better, measure)
        by_share = 100.0 * np.mean(after / before - 1.0)
        pooled = 100.0 * (after.sum() / before.sum() - 1.0)
        near = min(abs(by_share - percent), abs(pooled - percent)) <= 1.0
        yield AuditLine(
            section,
            claim,
            f"{percent:g}%",
            f"{by_share:.1f}% (mean of the three ratios), {pooled:.1f}% (ratio of the three means)",
            "follows" if near else "does not follow",
        )
    brac = table("brac")
    before, after = brac.means("BRAC", "final"), brac.means("BRAC+DR3", "final")
    gain = float(np.median(after) - np.median(before))
    yield AuditLine(
        section,
        "BRAC+DR3 improves the median score by 13.8",
        "13.8",
        f"{np.median(after):.1f} - {np.median(before):.1f} = {gain:.1f}; the median of the 15 differences is "
        f"{np.median(after - before):.1f}, and {np.sum(after > before)} of 15 tasks improve",
        "follows" if abs(gain - 13.8) < HALF_DIGIT else "does not follow",
    )


def stated_twice() -> Iterator[AuditLine]:
    section = "Settings that are stated twice"
    per_iteration = AtariSettings().gradient_steps_per_iteration
    for share, claimed in (("1%", 6.5), ("5%", 12.5), ("10%", 12.5)):
        data = ATARI_DATA[share]
        actual = data.gradient_steps / 1e6
        yield AuditLine(
            section,
            f"gradient steps on {share}",
            f"{claimed:g}M",
            f"{data.iterations} x {per_iteration:,} = {actual:g}M",
            "follows" if claimed == actual else "does not follow",
        )
    weights = CQLWeights()
    yield AuditLine(
        section,
        "CQL weight in all Atari experiments",
        "0.1",
        f"captions: {weights.atari_1} (1%), {weights.atari_5} (5%), {weights.atari_10} (10%)",
        "follows" if weights.atari_1 == weights.atari_5 == weights.atari_10 == 0.1 else "does not follow",
    )
    first, second = TUNING_GAMES.values()
    yield AuditLine(
        section,
        "the five tuning games",
        " and ".join(TUNING_GAMES),
        f"only the first has {', '.join(set(first) - set(second))}, the second {', '.join(set(second) - set(first))}",
        "follows" if set(first) == set(second) else "does not follow",
    )
    # Longer than CQL's 1M steps, times the 3x higher learning rate (though the CQL release's critic already has 3e-4).
    longer = [3 * steps / 1e6 for steps in D4RL().antmaze_steps]
    yield AuditLine(
        section,
        "AntMaze trains 9x longer at 2M and at 3M steps",
        "9x (text), 6x and 9x (caption)",
        " and ".join(f"{factor:g}x" for factor in longer) + ": steps over 1M, times 3 for the learning rate",
        "follows" if set(longer) == {9.0} else "does not follow",
    )
