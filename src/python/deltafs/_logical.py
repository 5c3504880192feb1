"""Logical files as file objects."""

from __future__ import annotations

import ctypes
import io
import os
from ctypes import byref, c_size_t, c_uint64
from dataclasses import dataclass
from typing import Any

from ._handle import Handle
from ._library import LogicalStat, lib


@dataclass(frozen=True)
class LogicalInfo:
    """What `deltafs stat` prints of a logical file."""

    size: int  #: bytes
    sessions: int  #: collective opens that wrote
    writers: int  #: logs in all
    extents: int  #: entries of the index
    flat_sessions: int  #: sessions whose extents are in one file
    bytes_stored: int
    uuid: str
    is_closed: bool  #: whether all sessions were closed
    is_incomplete: bool  #: whether something of it was lost


class LogicalFile(io.RawIOBase):
    """A logical file that is open for reading: a binary file object. Made by `deltafs.open_file`.

    It can be given to everything that reads from a file object, such as h5py.File. It has no buffer; wrap it in
    io.BufferedReader for many small reads. `readinto` reads into the caller's memory without a copy.

    >>> with deltafs.open_file("out") as f:
    ...     _ = f.seek(6)
    ...     f.read(5), f.tell(), f.size
    (b'world', 11, 12)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._file = Handle(
            path, lambda name, out: lib.deltafs_logical_open(name, os.O_RDONLY, None, out), lib.deltafs_logical_close
        )
        self.name = self._file.path
        self._position = 0

    def __repr__(self) -> str:
        return f"<deltafs.LogicalFile {self.name!r}{', closed' if self.closed else ''}>"

    def close(self) -> None:
        if not self.closed:
            super().close()
            if hasattr(self, "_file"):
                self._file.close()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        size = c_uint64()
        self._file.must(lib.deltafs_logical_size, byref(size))
        return size.value

    @property
    def info(self) -> LogicalInfo:
        """The file's properties."""
        stat = LogicalStat()
        self._file.must(lib.deltafs_logical_stat, byref(stat))
        return LogicalInfo(
            size=stat.size,
            sessions=stat.sessions,
            writers=stat.writers,
            extents=stat.extents,
            flat_sessions=stat.flat_sessions,
            bytes_stored=stat.bytes_stored,
            uuid=stat.uuid.decode(),
            is_closed=bool(stat.is_closed),
            is_incomplete=bool(stat.is_incomplete),
        )

    def refresh(self) -> None:
        """See what other processes have published since the file was opened."""
        self._file.must(lib.deltafs_logical_sync)

    def readable(self) -> bool:
        self._check_open()
        return True

    def seekable(self) -> bool:
        self._check_open()
        return True

    def readinto(self, buffer: Any) -> int:
        self._check_open()
        view = memoryview(buffer).cast("B")
        if len(view) == 0:
            return 0
        got = c_size_t()
        place = (ctypes.c_char * len(view)).from_buffer(view)
        self._file.must(lib.deltafs_logical_read, self._position, place, len(view), byref(got))
        self._position += got.value
        return got.value

    def readall(self) -> bytes:
        rest = bytearray(max(self.size - self._position, 0))
        return bytes(memoryview(rest)[: self.readinto(rest)])

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._check_open()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}
        if whence not in base:
            raise ValueError(f"whence {whence} is not 0, 1 or 2")
        if base[whence] + offset < 0:
            raise ValueError(f"position {base[whence] + offset} is before the begin of the file")
        self._position = base[whence] + offset
        return self._position

    def tell(self) -> int:
        self._check_open()
        return self._position

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self.name} is closed")
