"""From what a user writes to a regularizer."""

from __future__ import annotations

import re

from dr3.errors import UserError
from dr3.notation import settings_for, split
from dr3.regularizers import REGULARIZERS, Regularizer, Sum

_PLUS = re.compile(r"\+(?=[A-Za-z])")  # not that of 1e+3


def parse_regularizer(word: str) -> Regularizer | None:
    """`dr3:0.03`, `dr3:0.03:stop_gradient=next:absolute`; `none` for none; `dr3:0.03+beer:0.001` for a sum."""
    if len(words := _PLUS.split(word)) > 1:
        terms = [parse_regularizer(one) for one in words]
        if None in terms:
            raise UserError(f"{word!r}: none is no term of a sum.")
        try:
            return Sum(terms=tuple(term for term in terms if term is not None))
        except UserError as error:
            raise UserError(f"{word!r}: {error}") from None
    if word == "none":
        return None
    name, _ = split(word)
    if name == "none":
        raise UserError(f"{word!r}: none takes neither a coefficient nor settings.")
    cls = REGULARIZERS.lookup(name)
    settings = settings_for(cls, word)
    try:
        return cls(**settings)
    except UserError as error:
        raise UserError(f"{word!r}: {error}") from None
