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

from ._directory import Directory, Info
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
from ._version import __version__


def open(path: str | os.PathLike[str]) -> Directory:
    """Open a directory for reading. Nothing on disk changes.

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


def library_version() -> str:
    """The version of libdeltafs, which may differ from that of this package."""
    return _lib.deltafs_version().decode()


__all__ = [
    "BusyError",
    "CancelledError",
    "ChangedError",
    "CollectiveError",
    "DamagedError",
    "Directory",
    "Epochs",
    "Error",
    "ExistsError",
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
    "SizeError",
    "Table",
    "UncommittedError",
    "VersionError",
    "__version__",
    "library_version",
    "open",
    "open_file",
    "open_index",
]
