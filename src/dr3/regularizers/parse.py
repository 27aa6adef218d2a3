"""From what a user writes to a regularizer."""

from __future__ import annotations

from dr3.errors import UserError
from dr3.hyperparameters import lookup
from dr3.notation import settings_for, split
from dr3.regularizers import REGULARIZERS, Regularizer


def parse_regularizer(word: str) -> Regularizer | None:
    """`dr3:0.03`, `dr3:0.03:stop_gradient=next:absolute`; `none` for none."""
    if word == "none":
        return None
    name, _ = split(word)
    if name == "none":
        raise UserError(f"{word!r}: none has neither a coefficient nor settings.")
    cls = lookup(REGULARIZERS, name, "regularizer")
    return cls(**settings_for(cls, word))
