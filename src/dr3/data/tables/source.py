"""Rows of a table, some at a time, wherever it is: Parquet, CSV and Arrow files, folders of them, data frames."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dr3.data.checks import refuse
from dr3.data.gate import DAMAGED, first_bytes
from dr3.errors import UserError

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
ROWS = 65_536  # at a time


def arrow(source: str) -> Any:
    """The module pyarrow, with the parts of it that are used."""
    try:
        for part in ("pyarrow.dataset", "pyarrow.csv", "pyarrow.compute"):
            import_module(part)
        return import_module("pyarrow")
    except ImportError:
        raise UserError(f"{source}: reading tables needs pyarrow: pip install 'dr3[tables]'.") from None


class Span(NamedTuple):
    """Rows of one file that follow each other, and where they are: a refusal names the file and the row in it."""

    where: str
    first: int  # row of the file
    columns: Any  # a RecordBatch
    chosen: NDArray[np.intp] | None = None  # which rows from the first on these are, where some were left out

    def array(self, name: str) -> Any:
        return self.columns.column(name)

    def row(self, number: int) -> int:
        """The row of the file that one of these is."""
        return self.first + int(number if self.chosen is None else self.chosen[number])

    def only(self, keep: NDArray[np.bool_]) -> Span:
        """Some of the rows."""
        if keep.all():
            return self
        chosen = np.flatnonzero(keep)
        return self._replace(columns=self.columns.take(chosen), chosen=chosen)


@dataclass(frozen=True)
class Source:
    """A table that can be read again and again."""

    name: str  # for refusals
    title: str  # for the table's name
    names: tuple[str, ...]
    types: Any  # a pyarrow.Schema
    data: Any  # a pyarrow.dataset.Dataset, or a pyarrow.Table
    files: tuple[Path, ...] = ()

    def parts(self, columns: Sequence[str]) -> Iterator[Span]:
        """All rows of some columns, in the order of the files."""
        pyarrow = arrow(self.name)
        wanted = list(dict.fromkeys(columns))
        if not self.files:
            first = 0
            for batch in self.data.select(wanted).to_batches(max_chunksize=ROWS):
                yield Span(self.name, first, batch)
                first += len(batch)
            return
        kind = self.data.format.default_extname
        for fragment in self.data.get_fragments():
            first = 0
            options: dict[str, Any] = {"schema": self.types, "columns": wanted, "batch_size": ROWS}
            if kind == "parquet":
                # By default all that was read of a file stays in memory until its end.
                options["fragment_scan_options"] = pyarrow.dataset.ParquetFragmentScanOptions(pre_buffer=False)
            try:
                reader = fragment.scanner(**options, batch_readahead=1, fragment_readahead=1, use_threads=False)
                for batch in reader.to_batches():
                    if kind not in (
                        "parquet",
                        "csv",
                    ):  # Arrow's own files are mapped as they are: one bit can lead astray
                        batch.validate(full=True)
                    if len(batch):
                        yield Span(str(fragment.path), first, batch)
                    first += len(batch)
            except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
                _refuse_file(str(fragment.path), str(error), self.names)

    def largest_piece(self) -> int:
        """Bytes that a file says of its largest part which is unpacked at once: of Parquet, a group of rows."""
        if not self.files or self.data.format.default_extname != "parquet":
            return 0
        groups = (group for fragment in self.data.get_fragments() for group in fragment.row_groups)
        return max((group.total_byte_size for group in groups), default=0)

    def rows(self) -> int:
        pyarrow = arrow(self.name)
        try:
            return int(self.data.count_rows() if self.files else len(self.data))
        except (pyarrow.ArrowException, OSError) as error:
            _refuse_file(self.name, str(error), self.names)


def is_table_folder(folder: Path) -> bool:
    return folder.is_dir() and bool(_files_in(folder))


def is_table_object(given: Any) -> bool:
    """Whether something in memory can be read as a table: pyarrow, pandas, polars, DuckDB and others."""
    return hasattr(given, "__arrow_c_stream__")


def open_source(given: Any, *, exact: Collection[str] = ()) -> Source:
    """The table behind a file, a folder of files (partitioned or not), or something in memory.

    `exact` are columns of a CSV that stay integers; others become floats, for 3 may be followed by 3.5.
    """
    if is_table_object(given):
        title = type(given).__name__
        name = f"a {type(given).__module__.partition('.')[0]} {title}"
        pyarrow = arrow(name)
        table = pyarrow.table(given)
        _check_names(name, table.column_names)
        table = _plain_text(pyarrow, table)
        return Source(name, title, tuple(table.column_names), table.schema, table)
    if not isinstance(given, str | os.PathLike):
        raise UserError(f"A {type(given).__name__} is no table: pyarrow, pandas (2.2), polars and DuckDB make some.")
    path = Path(given)
    if not path.is_dir() and path.suffix.lower() not in FORMATS:
        refuse(str(path), f"its name is not one of a table's ({', '.join(FORMATS)}).")
    if path.is_dir() and not _files_in(path):
        refuse(str(path), f"this folder holds no table ({', '.join(FORMATS)}).")
    return _open_files(path, _files_in(path) if path.is_dir() else [path], exact)


def _plain_text(pyarrow: Any, table: Any) -> Any:
    """Text as pyarrow's functions take it: polars hands over views, which most of them do not know yet."""
    is_view = getattr(pyarrow.types, "is_string_view", lambda kind: False)
    views = [one.name for one in table.schema if is_view(one.type)]
    fields = [pyarrow.field(one.name, pyarrow.large_string()) if one.name in views else one for one in table.schema]
    return table.cast(pyarrow.schema(fields)) if views else table


def _files_in(folder: Path) -> list[Path]:
    """All files of the format that comes first, in the order of their names, with numbers as numbers."""
    found = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in FORMATS
        and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    ]

    def by_numbers(file: Path) -> list[Any]:
        return [(word.isdigit(), int(word) if word.isdigit() else word) for word in re.split(r"(\d+)", str(file))]

    return sorted(found, key=by_numbers)


def _open_files(path: Path, files: list[Path], exact: Collection[str]) -> Source:
    name = str(path)
    pyarrow = arrow(name)
    dataset = pyarrow.dataset
    forms = {FORMATS[file.suffix.lower()] for file in files}
    if len(forms) > 1:
        refuse(name, f"the folder holds files of several formats ({', '.join(sorted(forms))}); give one of them.")
    form: Any = forms.pop()
    for file in files:
        first_bytes(file, 1)
    options: dict[str, Any] = {}
    if path.is_dir():
        options = {"partitioning": dataset.partitioning(flavor="hive"), "partition_base_dir": name}
    if form == "csv":
        # An empty field is missing, of text too.
        convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
        form = dataset.CsvFileFormat(convert_options=convert)
    try:
        data = dataset.dataset([str(file) for file in files], format=form, **options)
        types = _common(pyarrow, data)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        _refuse_file(name, str(error), ())
    if isinstance(form, dataset.CsvFileFormat):
        types = _wider(pyarrow, types, exact)
    if types != data.schema:
        data = dataset.dataset([str(file) for file in files], schema=types, format=form, **options)
    return Source(name, path.stem, tuple(types.names), types, data, tuple(files))


def _common(pyarrow: Any, data: Any) -> Any:
    """The columns of the first file, in types that hold what every file has: 3 in one, 3.5 in another."""
    types = data.schema
    first: Any = None
    for fragment in data.get_fragments():
        own = fragment.physical_schema
        _check_names(str(fragment.path), own.names)
        first = first or fragment
        for one in first.physical_schema:
            if one.name not in own.names:
                refuse(str(fragment.path), f"there is no column {one.name!r}, which {first.path} has.")
            place, here, there = types.get_field_index(one.name), types.field(one.name), own.field(one.name)
            if here.type == there.type:
                continue
            pair = [pyarrow.schema([field.remove_metadata()]) for field in (here, there)]
            try:
                both = pyarrow.unify_schemas(pair, promote_options="permissive")
            except pyarrow.ArrowException:
                refuse(
                    str(fragment.path),
                    f"{one.name!r} holds values of type {there.type}, but in {first.path} of type {here.type}.",
                )
            types = types.set(place, both.field(0))
    return types


def _check_names(source: str, names: Sequence[str]) -> None:
    if twice := [one for number, one in enumerate(names) if one in names[:number]]:
        refuse(source, f"there are two columns {twice[0]!r}; give one of them another name.")


def _wider(pyarrow: Any, types: Any, exact: Collection[str]) -> Any:
    """What a CSV's first rows say of its columns, with room for what comes."""
    whole = pyarrow.types.is_integer, pyarrow.types.is_null
    return pyarrow.schema(
        pyarrow.field(one.name, pyarrow.float64())
        if one.name not in exact and any(is_whole(one.type) for is_whole in whole)
        else one
        for one in types
    )


def _refuse_file(where: str, error: str, names: Sequence[str]) -> NoReturn:
    """What pyarrow says, as one sentence of ours where it is about a value."""
    line = error.splitlines()[0] if error else ""
    value = re.search(
        r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (\w+): invalid value '(.*)'", line
    )
    if value:
        number, row, kind, text = value.groups()
        column = f"column {names[int(number)]!r}" if int(number) < len(names) else f"column {number}"
        place = f"line {row} of {column}" if row else column
        refuse(where, f"{place} holds {text!r}, but its first rows are of type {kind}.")
    ragged = re.search(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", line)
    if ragged:
        row, needed, found = ragged.groups()
        refuse(where, f"{'line ' + row if row else 'a line'} has {found} columns, but the header has {needed}.")
    if twice := re.search(r"CSV file contained multiple columns named (.*)", line):
        refuse(where, f"there are two columns {twice[1]!r}; give one of them another name.")
    refuse(where, DAMAGED)
