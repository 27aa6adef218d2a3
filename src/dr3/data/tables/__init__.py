"""Tables of logged decisions: what their columns mean, and how their rows become transitions."""

from dr3.data.tables.encode import encode_masks, encode_rows
from dr3.data.tables.guess import guess_schema
from dr3.data.tables.read import read_table
from dr3.data.tables.schema import Schema
from dr3.data.tables.source import is_table_folder, is_table_object

__all__ = ["Schema", "encode_masks", "encode_rows", "guess_schema", "is_table_folder", "is_table_object", "read_table"]
