"""libdeltafs: where it is, its structs and functions, and its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any


def _load() -> ctypes.CDLL:
    name = os.environ.get("DELTAFS_LIBRARY") or "libdeltafs.so.0"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(
            f"{error}; set DELTAFS_LIBRARY to the path of libdeltafs.so, or LD_LIBRARY_PATH to its folder"
        ) from None


lib = _load()


class Range(ctypes.Structure):
    _fields_ = [("first", c_uint64), ("last", c_uint64)]


class Record(ctypes.Structure):
    _fields_ = [
        ("key", c_uint64),
        ("label", c_uint64),
        ("value", c_void_p),
        ("size", c_size_t),
        ("key_bytes", c_void_p),
        ("key_size", c_size_t),
    ]


class Records(ctypes.Structure):
    _fields_ = [
        ("count", c_size_t),
        ("record", c_void_p),
        ("missing_count", c_size_t),
        ("missing", POINTER(c_uint64)),
    ]


class Sized(ctypes.Structure):
    """A struct that begins with struct_size."""

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(self))


class Arrays(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("capacity", c_size_t),
        ("keys", c_void_p),
        ("key_stride", c_size_t),
        ("labels", c_void_p),
        ("label_stride", c_size_t),
        ("values", c_void_p),
        ("value_stride", c_size_t),
    ]


class Stat(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("version", c_uint32),
        ("partitions", c_uint32),
        ("keys", c_char_p),
        ("epochs", c_uint64),
        ("records", c_uint64),
        ("bytes_raw", c_uint64),
        ("value_size", c_int64),
        ("schema", c_char_p),
        ("uuid", c_char_p),
        ("is_closed", c_int),
        ("layout", c_char_p),
        ("attributes", c_size_t),
    ]


class EpochStat(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("label", c_uint64),
        ("records", c_uint64),
        ("bytes_raw", c_uint64),
        ("bytes_stored", c_uint64),
    ]


class AttributeStruct(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("from_", c_uint64),
        ("type", c_int),
        ("count", c_size_t),
        ("value", c_void_p),
        ("unit_si", c_double),
        ("unit_dimension", c_double * 7),
    ]


class KeyList(ctypes.Structure):
    _fields_ = [("count", c_size_t), ("number", c_void_p), ("bytes", c_void_p), ("size", c_void_p)]


class SelectOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("where", c_char_p),
        ("by", c_char_p),
        ("top", c_uint64),
        ("fields", c_char_p),
        ("range", POINTER(Range)),
        ("keys", POINTER(KeyList)),
        ("and_keys", POINTER(KeyList)),
        ("not_keys", POINTER(KeyList)),
        ("part", c_uint32),
        ("parts", c_uint32),
    ]


class LogicalStat(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("size", c_uint64),
        ("sessions", c_uint64),
        ("writers", c_uint64),
        ("extents", c_uint64),
        ("flat_sessions", c_uint64),
        ("bytes_stored", c_uint64),
        ("uuid", c_char_p),
        ("is_closed", c_int),
        ("is_incomplete", c_int),
    ]


class TableStat(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("path", c_char_p),
        ("kind", c_char),
        ("table", c_char_p),
        ("label", c_uint64),
        ("rows", c_uint64),
        ("key", c_char_p),
        ("schema", c_char_p),
    ]


class IndexedRow(ctypes.Structure):
    _fields_ = [
        ("key", c_uint64),
        ("label", c_uint64),
        ("row", c_uint64),
        ("path", c_char_p),
        ("table", c_char_p),
        ("schema", c_char_p),
        ("value", c_void_p),
        ("size", c_size_t),
    ]


RecordFunction = CFUNCTYPE(c_int, c_void_p, c_void_p)
RowFunction = CFUNCTYPE(c_int, POINTER(IndexedRow), c_void_p)

_FUNCTIONS = {
    "deltafs_version": (c_char_p, []),
    "deltafs_errmsg": (c_char_p, [c_void_p]),
    "deltafs_open": (c_int, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "deltafs_refresh": (c_int, [c_void_p]),
    "deltafs_close": (c_int, [c_void_p]),
    "deltafs_get_many": (c_int, [c_void_p, c_size_t, c_void_p, POINTER(Range), c_void_p]),
    "deltafs_get_many_bytes": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, POINTER(Range), c_void_p]),
    "deltafs_records_destroy": (None, [POINTER(Records)]),
    "deltafs_scan": (c_int, [c_void_p, POINTER(Range), RecordFunction, c_void_p, c_void_p]),
    "deltafs_scan_partition": (c_int, [c_void_p, c_uint32, POINTER(Range), RecordFunction, c_void_p, c_void_p]),
    "deltafs_scan_many": (
        c_int,
        [c_void_p, POINTER(c_uint32), POINTER(Range), POINTER(Arrays), POINTER(c_size_t)],
    ),
    "deltafs_scan_range": (
        c_int,
        [c_void_p, c_uint64, c_uint64, POINTER(Range), RecordFunction, c_void_p, c_void_p],
    ),
    "deltafs_scan_range_bytes": (
        c_int,
        [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(Range), RecordFunction, c_void_p, c_void_p],
    ),
    "deltafs_scan_range_many": (
        c_int,
        [c_void_p, c_uint64, c_uint64, POINTER(Range), POINTER(Arrays), POINTER(c_size_t)],
    ),
    "deltafs_stat": (c_int, [c_void_p, POINTER(Stat)]),
    "deltafs_bytes_stored": (c_int, [c_void_p, POINTER(c_uint64)]),
    "deltafs_epoch_stat": (c_int, [c_void_p, c_uint64, POINTER(EpochStat)]),
    "deltafs_attribute_get": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(AttributeStruct)]),
    "deltafs_attribute_at": (c_int, [c_void_p, c_size_t, POINTER(AttributeStruct)]),
    "deltafs_select_open": (c_int, [c_void_p, POINTER(SelectOptions), c_void_p]),
    "deltafs_select_schema": (c_char_p, [c_void_p]),
    "deltafs_select_next": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "deltafs_select_close": (c_int, [c_void_p]),
    "deltafs_columns_open": (c_int, [c_void_p, c_char_p, c_void_p]),
    "deltafs_columns_schema": (c_char_p, [c_void_p]),
    "deltafs_columns_rows": (c_int, [c_void_p, c_size_t, c_void_p, POINTER(c_void_p)]),
    "deltafs_columns_close": (c_int, [c_void_p]),
    "deltafs_logical_open": (c_int, [c_char_p, c_int, c_void_p, POINTER(c_void_p)]),
    "deltafs_logical_close": (c_int, [c_void_p]),
    "deltafs_logical_read": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t, POINTER(c_size_t)]),
    "deltafs_logical_size": (c_int, [c_void_p, POINTER(c_uint64)]),
    "deltafs_logical_sync": (c_int, [c_void_p]),
    "deltafs_logical_stat": (c_int, [c_void_p, POINTER(LogicalStat)]),
    "deltafs_fileindex_open": (c_int, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "deltafs_fileindex_close": (c_int, [c_void_p]),
    "deltafs_fileindex_get": (c_int, [c_void_p, c_uint64, POINTER(Range), RowFunction, c_void_p, c_void_p]),
    "deltafs_fileindex_missing": (c_int, [c_void_p, POINTER(POINTER(c_uint64)), POINTER(c_size_t)]),
    "deltafs_fileindex_table": (c_int, [c_void_p, c_size_t, POINTER(TableStat)]),
}

for _name, (_result, _arguments) in _FUNCTIONS.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError:
        raise ImportError(f"{lib._name} is older than this package: it has no {_name}; install both again") from None
    _function.restype = _result
    _function.argtypes = _arguments


class Error(OSError):
    """An error of the library. Each status has a class of its own; the text is the library's message.

    If a part of the answer could be read, `partial` has this part, in the form of a complete answer, and `missing` has
    the labels of the epochs that could not be read, as far as they are known. Otherwise `partial` is None.
    """

    status = 0
    partial: Any = None
    missing: tuple[int, ...] = ()


class InvalidError(Error):
    """An argument that the library does not accept."""

    status = -1


class OptionError(Error):
    """A bad value of an option in the environment (DELTAFS_NAME)."""

    status = -2


class SchemaError(Error):
    """A schema that cannot be parsed, or a negative key in an indexed file."""

    status = -3


class SizeError(Error):
    """A value of another size than the directory's."""

    status = -4


class LabelError(Error):
    """A label that is not greater than the last one."""

    status = -5


class ModeError(Error):
    """A call that does not fit the kind of the directory."""

    status = -6


class CollectiveError(Error):
    """The ranks of a job did not make the same call."""

    status = -7


class CancelledError(Error):
    """The caller aborted the epoch."""

    status = -8


class NotFoundError(Error, FileNotFoundError):
    """There is no such directory, file, key or epoch."""

    status = -20


class ExistsError(Error, FileExistsError):
    """What is to be created exists."""

    status = -21


class NotDeltafsError(Error):
    """A folder or file that DeltaFS did not write."""

    status = -22


class UncommittedError(Error):
    """Records were discarded that belonged to no epoch."""

    status = -23


class BusyError(Error):
    """Another job is writing the directory."""

    status = -24


class ChangedError(Error):
    """A file was changed after it was indexed, or is gone."""

    status = -25


class NoMemoryError(Error):
    """No memory, or a memory limit that is too small for the work."""

    status = -40


class IoError(Error):
    """The operating system refused or failed a file operation."""

    status = -41


class NoSpaceError(Error):
    """The file system or the quota is full."""

    status = -42


class DamagedError(Error):
    """Bytes that do not match their checksum; the message names file and offset."""

    status = -60


class VersionError(Error):
    """Written by a newer version of DeltaFS, in a form that this one cannot read."""

    status = -61


class MpiError(Error):
    """MPI failed."""

    status = -80


ERRORS: dict[int, type[Error]] = {kind.status: kind for kind in Error.__subclasses__()}


def error(status: int) -> Error:
    """The exception for a status that a function of the library has just returned in this thread."""
    return ERRORS.get(status, Error)(lib.deltafs_errmsg(None).decode(errors="replace"))


def check(status: int) -> None:
    if status != 0:
        raise error(status)
