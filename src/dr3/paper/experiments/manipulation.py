"""COG, robotic manipulation from images."""

from __future__ import annotations

from dr3.paper.experiments.declaration import Design, Experiment, Folders, Scale
from dr3.paper.experiments.evidence import SCORE
from dr3.paper.experiments.pictures import Curves
from dr3.paper.experiments.score_checks import Gain


def _drawers(scale: Scale, folders: Folders) -> Design:
    return Design(blocked="COG, which is CQL with continuous actions on images, is not among the methods yet")


COG = Experiment(
    id="figure-3",
    label="fig:cog_figure",
    title="COG on two drawer tasks with 5 % and 25 % of the data",
    claim="COG + DR3 learns faster than COG and attains a higher average and final performance.",
    printed="Curves only.",
    design=_drawers,
    checks=(Gain("COG + DR3", "COG", "average"), Gain("COG + DR3", "COG", "final")),
    picture=Curves((SCORE,)),
    needs=dict.fromkeys(("smoke", "laptop", "paper"), "a method for continuous actions on images"),
)
