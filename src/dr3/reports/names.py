"""What people call things: "CQL + DR3 0.03" where a command says cql and dr3:0.03, "Space Invaders" where one says
space_invaders."""

from __future__ import annotations

from dr3.methods import METHODS
from dr3.notation import split
from dr3.registry import Registry
from dr3.regularizers import REGULARIZERS

SPOKEN = {"td3-bc": "TD3+BC", "label-noise": "label noise", "srank": "srank penalty", "norm": "feature norm"}


def algorithm_name(word: str) -> str:
    """`continuous-cql+dr3:0.03` -> "CQL + DR3 0.03"; a sum of terms has all of them."""
    method, *terms = word.split("+")
    return " + ".join([_spoken(METHODS, method), *(_term_name(term) for term in terms)])


def world_name(word: str) -> str:
    """`minatar/space_invaders` -> "Space Invaders"."""
    place = word.rpartition("/")[2].replace("_", " ")
    return " ".join(part[:1].upper() + part[1:] for part in place.split())


def _term_name(word: str) -> str:
    name, settings = split(word)
    return " ".join([_spoken(REGULARIZERS, name), *settings])


def _spoken(registry: Registry, name: str) -> str:
    """As papers have it, whatever kind of actions it is for."""
    if name in SPOKEN or name not in registry:
        return SPOKEN.get(name, name)
    return registry[name].__name__.removeprefix("Continuous").removeprefix("Discrete")
