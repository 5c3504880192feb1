"""Reads what DeltaFS has written, without MPI: trajectories of particles, whole epochs, logical files, indexes.

The library is $DELTAFS_LIBRARY (the path of libdeltafs.so); without it, the system's loader looks for libdeltafs.so.0.
deltafs-python(7) is the manual.

>>> import deltafs
>>> with deltafs.open("particles") as d:
...     x = d.track([1, 2, 4])["x"]
>>> x[-1].tolist()
[2.0, 3.0, None]
"""

from __future__ import annotations

import os

import numpy as _np

from ._arrow import ArrowTable
from ._directory import Attribute, Directory, Fields, Info
from ._fileindex import FileIndex, Row, Table
from ._handle import Epochs
from ._library import (
    BusyError,
    CancelledError,
    ChangedError,
    CollectiveError,
    DamagedError,
    Error,
    ExistsError,
    InvalidError,
    IoError,
    LabelError,
    ModeError,
    MpiError,
    NoMemoryError,
    NoSpaceError,
    NotDeltafsError,
    NotFoundError,
    OptionError,
    SchemaError,
    SizeError,
    UncommittedError,
    VersionError,
    lib as _lib,
)
from ._logical import LogicalFile, LogicalInfo
from ._select import Selection
from ._version import __version__


def open(path: str | os.PathLike[str]) -> Directory:
    """Open a directory for reading. Nothing on disk changes. An index over files is a ModeError; `open_index` opens it.

    Options of the library, such as read_threads, are taken from the environment (DELTAFS_READ_THREADS).

    >>> with deltafs.open("particles") as d:
    ...     d.labels.tolist()
    [0, 100, 200]
    """
    return Directory(path)


def open_file(path: str | os.PathLike[str]) -> LogicalFile:
    """Open a logical file for reading, as a binary file object.

    >>> deltafs.open_file("out").read()
    b'hello world\\n'
    """
    return LogicalFile(path)


def open_index(path: str | os.PathLike[str]) -> FileIndex:
    """Open the index at a path, or the index that belongs to the file at this path."""
    return FileIndex(path)


def to_arrow(rows: _np.ndarray) -> ArrowTable:
    """A structured array, such as select returns, for programs that take Arrow's data: pyarrow, polars, DuckDB, pandas.

    Each column is copied into one piece, if it is not, and the programs use this memory.

    >>> with deltafs.open("particles") as d:
    ...     table = deltafs.to_arrow(d.select("x > 2"))  # pyarrow.table(table), polars.DataFrame(table)
    """
    return ArrowTable(rows)


def library_version() -> str:
    """The version of libdeltafs, which may differ from that of this package."""
    return _lib.deltafs_version().decode()


__all__ = [
    "ArrowTable",
    "Attribute",
    "BusyError",
    "CancelledError",
    "ChangedError",
    "CollectiveError",
    "DamagedError",
    "Directory",
    "Epochs",
    "Error",
    "ExistsError",
    "Fields",
    "FileIndex",
    "Info",
    "InvalidError",
    "IoError",
    "LabelError",
    "LogicalFile",
    "LogicalInfo",
    "ModeError",
    "MpiError",
    "NoMemoryError",
    "NoSpaceError",
    "NotDeltafsError",
    "NotFoundError",
    "OptionError",
    "Row",
    "SchemaError",
    "Selection",
    "SizeError",
    "Table",
    "UncommittedError",
    "VersionError",
    "__version__",
    "library_version",
    "open",
    "open_file",
    "open_index",
    "to_arrow",
]
