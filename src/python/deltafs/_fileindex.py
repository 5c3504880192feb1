"""Indexes over files: the rows of a key in files that stay as they are."""

from __future__ import annotations

import os
from ctypes import POINTER, byref, c_size_t, c_uint64, string_at
from typing import Any, NamedTuple

import numpy as np

from ._handle import Epochs, Handle, columns, epoch_range, range_pointer, u64
from ._library import IndexedRow, InvalidError, NotFoundError, RowFunction, TableStat, lib


class Table(NamedTuple):
    """A part of a source file that holds one timestep."""

    path: str  #: of the source file, as it is reached now
    is_logical: bool  #: whether the source file is a logical file
    name: str  #: "" if the file has one table only
    label: int
    rows: int
    key: str  #: the name of the key's column
    dtype: np.dtype  #: of the other columns


class Row(NamedTuple):
    """A row of a source file."""

    key: int
    label: int
    row: int  #: its number in the table
    path: str
    table: str
    value: np.void  #: its columns without the key: row.value["x"]


class FileIndex(Handle):
    """An index over files that is open for reading. Made by `deltafs.open_index`.

    >>> with deltafs.open_index("dumps.keys") as index:
    ...     [(row.label, row.value["x"].item()) for row in index.get(7)]
    [(10, 0.5), (20, 0.75)]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(
            os.path.abspath(path),
            lambda name, out: lib.deltafs_fileindex_open(name, None, out),
            lib.deltafs_fileindex_close,
        )

    def __repr__(self) -> str:
        return f"<deltafs.FileIndex {self.path!r}{', closed' if self.is_closed else ''}>"

    def __reduce__(self) -> tuple[type[FileIndex], tuple[str]]:
        return FileIndex, (self.path,)

    @property
    def tables(self) -> list[Table]:
        """The indexed tables, in the order in which `get` looks at them.

        >>> with deltafs.open_index("dumps.keys") as index:
        ...     [(table.label, table.rows, table.key) for table in index.tables]
        [(10, 3, 'id'), (20, 3, 'id')]
        """
        tables: list[Table] = []
        while True:
            stat = TableStat()
            failed = self.call(lib.deltafs_fileindex_table, len(tables), byref(stat))
            if isinstance(failed, InvalidError):
                return tables
            if failed is not None:
                raise failed
            tables.append(
                Table(
                    os.fsdecode(stat.path),
                    stat.kind == b"f",
                    stat.table.decode(),
                    stat.label,
                    stat.rows,
                    stat.key.decode(),
                    np.dtype(columns(stat.schema.decode())),
                )
            )

    def get(self, key: int, epochs: Epochs = None) -> list[Row]:
        """All rows of a key: by label, then in the order in which the files were indexed. [] if there are none.

        If a file was changed after it was indexed, or cannot be read, the method raises an error, for example
        ChangedError. Its `partial` has the rows of the other files; its `missing` has the labels of the tables that
        could not be read.
        """
        rows: list[Row] = []
        raised: list[BaseException] = []
        dtypes: dict[bytes, np.dtype] = {}

        def add(at: Any, _: None) -> int:
            try:
                row = at.contents
                if row.schema not in dtypes:
                    dtypes[row.schema] = np.dtype(columns(row.schema.decode()))
                value = np.frombuffer(string_at(row.value, row.size), dtypes[row.schema])[0]
                rows.append(Row(row.key, row.label, row.row, os.fsdecode(row.path), row.table.decode(), value))
                return 0
            except BaseException as exception:  # the library has to return first
                raised.append(exception)
                return 1

        number, range_ = u64(key, "key"), epoch_range(epochs)
        failed = self.call(lib.deltafs_fileindex_get, number, range_pointer(range_), RowFunction(add), None, None)
        if raised:
            raise raised[0]
        if failed is None or isinstance(failed, NotFoundError):
            return rows
        failed.partial = rows
        failed.missing = self._missing()
        raise failed

    def _missing(self) -> tuple[int, ...]:
        labels, count = POINTER(c_uint64)(), c_size_t()
        self.must(lib.deltafs_fileindex_missing, byref(labels), byref(count))
        return tuple(labels[: count.value])
