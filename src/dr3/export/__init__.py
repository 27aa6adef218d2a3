"""A policy as a file that proves itself: ONNX, StableHLO or weights, a contract, and a replay of logged rows.

Names are looked up when they are first used: what verifies a file must not load JAX.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dr3.export.policy import Exported, export_policy
    from dr3.export.replay import Verified, verify

__all__ = ["Exported", "Verified", "export_policy", "verify"]

_HOMES = {"Exported": "policy", "Verified": "replay", "export_policy": "policy", "verify": "replay"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dr3.export' has no attribute {name!r}")
    return getattr(import_module(f"dr3.export.{_HOMES[name]}"), name)
