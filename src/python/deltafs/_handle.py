"""What all handles of the library have in common."""

from __future__ import annotations

import operator
import os
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Optional, Tuple, TypeVar, Union

from ._library import Error, Range, check, error

#: Which epochs: None for all, a label, or a pair (first label, last label); both belong to the range, and None leaves
#: an end open.
Epochs = Union[None, int, Tuple[Optional[int], Optional[int]]]

U64_MAX = 2**64 - 1

_Self = TypeVar("_Self", bound="Handle")


def u64(value: Any, what: str) -> int:
    """An integer as the library takes it, which ctypes would cut without a word."""
    number = operator.index(value)
    if not 0 <= number <= U64_MAX:
        raise ValueError(f"{what} {number} is not from 0 to 2**64 - 1")
    return number


def epoch_range(epochs: Epochs) -> Range | None:
    if epochs is None:
        return None
    if isinstance(epochs, (tuple, list)):
        if len(epochs) != 2:
            raise ValueError("epochs is None, a label, or a pair (first label, last label)")
        first, last = epochs
        return Range(u64(0 if first is None else first, "label"), u64(U64_MAX if last is None else last, "label"))
    label = u64(epochs, "label")
    return Range(label, label)


def range_pointer(range_: Range | None) -> Any:
    return None if range_ is None else byref(range_)


def columns(schema: str) -> list[tuple[str, str]]:
    """The fields of a schema for numpy.dtype. The names key and epoch are those of a record itself."""
    fields = (field.partition("~")[0].split(":") for field in schema.split(",") if field)
    return [
        (f"value.{name}" if name in ("key", "epoch") else name, "<" + kind if kind[0] in "fiu" else kind)
        for name, kind in ((name, kind.lstrip("<")) for name, kind in fields)
    ]


class Handle:
    """A handle of the library: closed once, used by one thread at a time, and only by the process that opened it."""

    def __init__(self, path: str | os.PathLike[str], opener: Callable[..., int], closer: Callable[..., int]) -> None:
        self._handle: c_void_p | None = None
        self._closer = closer
        self._lock = threading.RLock()  # within a call, Python may collect a selection
        self._pid = os.getpid()
        self.path = os.fspath(path)
        handle = c_void_p()
        check(opener(os.fsencode(path), byref(handle)))
        self._handle = handle

    def call(self, function: Callable[..., int], *arguments: Any) -> Error | None:
        """Call a function on the handle. Returns the error, if there is one."""
        with self._lock:
            if self._handle is None:
                raise ValueError(f"{self.path} is closed")
            if self._pid != os.getpid():
                raise ValueError(f"{self.path} was opened by another process; open it again in this one")
            status = function(self._handle, *arguments)
            return None if status == 0 else error(status)

    def must(self, function: Callable[..., int], *arguments: Any) -> None:
        failed = self.call(function, *arguments)
        if failed is not None:
            raise failed

    @property
    def is_closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None and self._pid == os.getpid():
                self._end()
                check(self._closer(handle))

    def _end(self) -> None:
        """What has to be closed before the handle."""

    def __enter__(self: _Self) -> _Self:
        if self._handle is None:
            raise ValueError(f"{self.path} is closed")
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()
