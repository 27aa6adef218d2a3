"""The shapes of arrays that cross rooms: written as types (jaxtyping), and checked where a method hands them over.

In a shape `n` is the rows of a batch, `d` the features, `*critics` the axis of an ensemble (or none).
"""

from __future__ import annotations

from types import NoneType
from typing import NamedTuple, get_args, get_type_hints

from jaxtyping import jaxtyped

from dr3.errors import UserError


def check_shapes(what: str, *records: NamedTuple) -> None:
    """Refuse arrays whose shapes are not those of their types; an axis of one name has one length in all records.

    It looks at shapes alone, so that in a compiled program it costs nothing. Without it an array (n, 1) in the place of
    (n,) would be broadcast to (n, n), and training would go on with nonsense.

    Args:
        what: Whose arrays they are, to begin a sentence with.
        records: Named tuples whose annotations are types of jaxtyping; a field that may be None may be that.

    Raises:
        UserError: It names the first field that does not fit.
    """
    with jaxtyped("context"):
        for record in records:
            hints = get_type_hints(type(record))
            for name, value in record._asdict().items():
                hint = next(one for one in get_args(hints[name]) or (hints[name],) if one is not NoneType)
                if value is not None and not isinstance(value, hint):
                    due = f"{hint.dtype.__name__}[{hint.dim_str.strip()}]"
                    raise UserError(
                        f"{what}: its {name} has the shape {value.shape} and the type {value.dtype}, but {due} is due "
                        "(n: the rows of the batch, which has one length everywhere)."
                    )
