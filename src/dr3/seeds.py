"""What may be a seed."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from dr3.errors import UserError


def check_seed(seed: Any) -> int:
    """The seed as Python's own integer. JAX's keys are made from 32 bits, and numpy knows no negative seeds."""
    if not (isinstance(seed, Integral) and 0 <= seed < 2**32):
        raise UserError(f"A seed is a whole number from 0 to 4294967295, not {seed!r}.")
    return int(seed)
