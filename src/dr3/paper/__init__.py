"""The paper's own numbers: its tables as data, its hyperparameters as presets, an audit of it all."""

from dr3.paper.atari import atari
from dr3.paper.auditing import audit
from dr3.paper.auditing.line import AuditLine
from dr3.paper.cog import cog
from dr3.paper.d4rl import d4rl_brac, d4rl_cql
from dr3.paper.presets import PRESETS, Setting, settings
from dr3.paper.scores import Printed, normalise, printed
from dr3.paper.tables import Column, PrintedValue, Table, all_tables, table

__all__ = [
    "PRESETS",
    "AuditLine",
    "Column",
    "Printed",
    "PrintedValue",
    "Setting",
    "Table",
    "all_tables",
    "atari",
    "audit",
    "cog",
    "d4rl_brac",
    "d4rl_cql",
    "normalise",
    "printed",
    "settings",
    "table",
]
