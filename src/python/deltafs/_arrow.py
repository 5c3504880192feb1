"""Arrays in the form of Arrow's C data interface, which many programs take without a copy. Arrow itself is not needed.

The structs, the letters of the types and the names of the capsules are those of the interface. Each struct that is
handed out has a number in `private_data`; `_kept` has what the struct needs, until it is released.
"""

from __future__ import annotations

import ctypes
import itertools
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, pythonapi
from typing import Any, Iterable, Iterator

import numpy as np


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Release = CFUNCTYPE(None, c_void_p)
_Get = CFUNCTYPE(c_int, c_void_p, c_void_p)
_LastError = CFUNCTYPE(c_void_p, c_void_p)

_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]

_EIO = 5
_STREAM_NAME = b"arrow_array_stream"
_FORMATS = {"i": "csil", "u": "CSIL", "f": " efg"}  # by the power of two that is the size
_numbers = itertools.count(1)
_kept: dict[int, Any] = {}


def _format(kind: np.dtype) -> bytes:
    if kind.kind in _FORMATS:
        return _FORMATS[kind.kind][kind.itemsize.bit_length() - 1].encode()
    return b"w:%d" % kind.itemsize if kind.kind == "V" else b"Z"  # Z: bytes of any size, with offsets of 64 bits


_pending = (c_void_p(), c_void_p(), c_void_p())
_pending_at = tuple(map(ctypes.byref, _pending))
_fetch, _restore = pythonapi.PyErr_Fetch, pythonapi.PyErr_Restore
_fetch.restype = _restore.restype = None


def _release_with(kind: type[Structure]) -> Any:
    """A function that releases a struct of this kind, and its children as far as nobody has taken them."""

    def release(address: int) -> None:
        _fetch(*_pending_at)  # first: a program may release a struct while an exception is on its way
        pending = tuple(slot.value for slot in _pending)
        it: Any = kind.from_address(address)
        for i in range(getattr(it, "n_children", 0)):
            child = it.children[i].contents
            if child.release:
                _Release(child.release)(ctypes.addressof(child))
        it.release = None
        _kept.pop(it.private_data, None)
        if pending[0]:
            _restore(*map(c_void_p, pending))  # ctypes prints it

    return _Release(release)


_release_schema, _release_array, _release_stream = map(_release_with, (_Schema, _Array, _Stream))


def _hand_out(it: Any, release: Any, *needed: Any) -> None:
    """Let a struct live until it is released."""
    it.private_data = next(_numbers)
    it.release = ctypes.cast(release, c_void_p)
    _kept[it.private_data] = needed


def _pointers(kind: Any, items: list[Any]) -> Any:
    return (POINTER(kind) * len(items))(*map(ctypes.pointer, items))


def _fill_schema(out: Any, kind: np.dtype, name: str) -> None:
    ctypes.memset(ctypes.addressof(out), 0, ctypes.sizeof(out))
    children = [_Schema() for _ in kind.names or ()]
    for child, field in zip(children, kind.names or ()):
        _fill_schema(child, kind[field], field)
    texts = (b"+s" if kind.names else _format(kind), name.encode())
    out.format, out.name = texts
    out.n_children = len(children)
    pointers = _pointers(_Schema, children)
    out.children = ctypes.cast(pointers, POINTER(POINTER(_Schema)))
    _hand_out(out, _release_schema, texts, children, pointers)


def _buffers(column: np.ndarray) -> list[np.ndarray]:
    """The memory of a column. A column that lies in one piece, in this machine's byte order, is not copied."""
    if column.dtype.kind in "iufV":
        return [np.ascontiguousarray(column, column.dtype.newbyteorder("="))]
    items = column.tolist()
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum([len(item) for item in items], out=offsets[1:])
    return [offsets, np.frombuffer(b"".join(items) or b"\0", np.uint8)]


def _fill_array(out: Any, rows: np.ndarray) -> None:
    ctypes.memset(ctypes.addressof(out), 0, ctypes.sizeof(out))
    children = [_Array() for _ in rows.dtype.names or ()]
    for child, field in zip(children, rows.dtype.names or ()):
        _fill_array(child, rows[field])
    memory = [] if rows.dtype.names else _buffers(rows)
    addresses = (c_void_p * (1 + len(memory)))(None, *(buffer.ctypes.data for buffer in memory))  # first: no nulls
    out.length = len(rows)
    out.n_buffers = len(addresses)
    out.n_children = len(children)
    out.buffers = ctypes.cast(addresses, POINTER(c_void_p))
    pointers = _pointers(_Array, children)
    out.children = ctypes.cast(pointers, POINTER(POINTER(_Array)))
    _hand_out(out, _release_array, memory, addresses, children, pointers)


class _Source:
    """What a stream reads from."""

    def __init__(self, kind: np.dtype, chunks: Iterator[np.ndarray]) -> None:
        self.kind = kind
        self.chunks = chunks
        self.error = ctypes.create_string_buffer(b"")

    def guarded(self, function: Any, *arguments: Any) -> int:
        try:
            function(*arguments)
            return 0
        except BaseException as exception:  # the caller is no Python program
            self.error = ctypes.create_string_buffer(str(exception).encode() or type(exception).__name__.encode())
            return _EIO

    def next(self, out: Any) -> None:
        rows = next(self.chunks, None)
        if rows is None:
            out.release = None  # the end
        else:
            _fill_array(out, rows)


def _source(stream_: int) -> _Source:
    found: _Source = _kept[_Stream.from_address(stream_).private_data][0]
    return found


@_Get
def _get_schema(stream_: int, out: int) -> int:
    source = _source(stream_)
    return source.guarded(_fill_schema, _Schema.from_address(out), source.kind, "")


@_Get
def _get_next(stream_: int, out: int) -> int:
    source = _source(stream_)
    return source.guarded(source.next, _Array.from_address(out))


@_LastError
def _get_last_error(stream_: int) -> int:
    return ctypes.addressof(_source(stream_).error)


pythonapi.PyCapsule_New.restype = ctypes.py_object
pythonapi.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]

# Structs may be released while Python ends, after the module is gone.
for _function in (_release_schema, _release_array, _release_stream, _get_schema, _get_next, _get_last_error):
    pythonapi.Py_IncRef(ctypes.py_object(_function))


_streams: list[_Stream] = []


def stream(kind: np.dtype, chunks: Iterable[np.ndarray]) -> Any:
    """A capsule with a stream of structured arrays of this kind.

    The capsule has no destructor, which Python could not run safely behind an exception. So the few bytes of its struct
    stay in memory, and also what nobody takes out of it.
    """
    it = _Stream()
    for name, function in (("schema", _get_schema), ("next", _get_next), ("last_error", _get_last_error)):
        setattr(it, f"get_{name}", ctypes.cast(function, c_void_p))
    _hand_out(it, _release_stream, _Source(kind, iter(chunks)))
    _streams.append(it)
    return pythonapi.PyCapsule_New(ctypes.addressof(it), _STREAM_NAME, None)


class ArrowTable:
    """Rows for all programs that take Arrow's streams. Made by `deltafs.to_arrow` and `Directory.to_arrow`.

    >>> with deltafs.open("particles") as d:
    ...     table = d.to_arrow()
    >>> type(table.__arrow_c_stream__()).__name__
    'PyCapsule'
    """

    def __init__(self, rows: np.ndarray) -> None:
        if isinstance(rows, np.ma.MaskedArray) or rows.ndim != 1 or not rows.dtype.names:
            raise ValueError("Arrow takes a structured array of one dimension without a mask: d.records(keys), say, not d.track")
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return stream(self.rows.dtype, [self.rows])
