"""Everything in this folder computes in double precision, and nothing outside it notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dr3.theory import float64


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with float64():
        yield
