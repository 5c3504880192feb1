"""Rows that are selected: the arrays that a select returns one after the other."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ._library import SelectOptions, check, lib

if TYPE_CHECKING:
    from ._directory import Directory


def view(address: int | None, size: int) -> Any:
    """Memory of the library, without a copy."""
    return (c_char * size).from_address(address) if address and size else b""


class Selection:
    """The rows of a select, as an iterator over structured arrays. Made by `Directory.select_chunks`.

    Only one array is in memory at a time.

    >>> with deltafs.open("particles") as d, d.select_chunks("x > 1", fields="x") as chunks:
    ...     sum(len(rows) for rows in chunks), chunks.dtype.names
    (10, ('key', 'epoch', 'x'))
    """

    def __init__(
        self,
        directory: Directory,
        options: SelectOptions,
        take: Callable[[int, int], np.ndarray],
        describe: Callable[[str], np.dtype],
    ) -> None:
        self._select: c_void_p | None = None
        self._directory = directory
        self._take = take
        self._pid = os.getpid()
        self._is_done = False

        def open_(handle: c_void_p) -> int:
            select = c_void_p()
            status: int = lib.deltafs_select_open(handle, byref(options), byref(select))
            if status == 0:
                self._select = select
                directory.selections.add(self)
            return status

        directory.must(open_)
        #: The fields of the arrays.
        self.dtype = describe(lib.deltafs_select_schema(self._select).decode())

    def __iter__(self) -> Selection:
        return self

    def __next__(self) -> np.ndarray:
        rows, count = c_void_p(), c_size_t()
        array: list[np.ndarray] = []

        def take(_: c_void_p) -> int:
            if self._select is None:
                raise ValueError("the selection is closed")
            status: int = lib.deltafs_select_next(self._select, byref(rows), byref(count))
            if status == 0 and count.value > 0:  # the next call changes the rows
                array.append(self._take(rows.value or 0, count.value))
            return status

        if self._is_done:
            raise StopIteration
        self._directory.must(take)
        if not array:
            self._is_done = True
            self.close()
            raise StopIteration
        return array[0]

    def close(self) -> None:
        """End the select. An iteration that has not ended cannot go on."""
        if self._pid != os.getpid():  # its threads are those of another process
            return
        with self._directory._lock:
            select, self._select = self._select, None
            if select is not None:
                self._directory.selections.discard(self)
                check(lib.deltafs_select_close(select))

    def __enter__(self) -> Selection:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
