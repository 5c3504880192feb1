"""Directories: the trajectories of particles, and whole epochs."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_uint64, string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _convert
from ._handle import Epochs, Handle, columns, epoch_range, range_pointer, u64
from ._library import (
    Arrays,
    DamagedError,
    EpochStat,
    Error,
    IoError,
    NotFoundError,
    Range,
    Record,
    RecordFunction,
    Records,
    Stat,
    lib,
)

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import pyarrow
    import xarray

_RECORD: Any = np.dtype(Record)  # as the library lays them out
_EPOCH = np.dtype([("label", "u8"), ("records", "u8"), ("bytes_raw", "u8"), ("bytes_stored", "u8")])
_AT_ONCE = 1 << 16  # keys of one call: bounds the memory of the library's answer


@dataclass(frozen=True)
class Info:
    """What `deltafs info` prints of a directory. Sizes are in bytes."""

    version: int  #: of the format on disk
    partitions: int
    keys: str  #: "u64" or "bytes"
    epochs: int  #: committed epochs
    records: int  #: in them
    bytes_raw: int  #: of keys and values, as they were appended
    bytes_stored: int  #: of all files
    value_size: int  #: of every value, or -1 if sizes differ
    schema: str  #: "" if there is none
    uuid: str
    is_closed: bool  #: whether its writer closed it
    layout: str  #: "partitioned" or "local"


class Directory(Handle):
    """A directory of DeltaFS that is open for reading. Made by `deltafs.open`.

    The columns of a value, `dtype`, are those of the schema. Without a schema there is one column, `value`: of type V
    if all values have the same size, and of Python's bytes otherwise. A column that is called key or epoch has the name
    value.key or value.epoch here. Keys are numbers of type uint64; in a directory with keys=bytes they are bytes.

    Several threads may use one Directory, but they wait for each other. Open one for each thread to read in parallel. A
    Directory that is sent to another process (pickled) is opened again there.

    >>> with deltafs.open("particles") as d:
    ...     d.labels.tolist(), d.dtype.names
    ([0, 100, 200], ('x', 'y', 'n'))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.path.abspath(path), lambda name, out: lib.deltafs_open(name, None, out), lib.deltafs_close)
        self._epochs: np.ndarray | None = None
        stat = self._stat()
        self._is_bytes = stat.keys == b"bytes"
        self._partitions = stat.partitions
        #: The columns of a value.
        self.dtype = np.dtype(
            columns(stat.schema.decode())
            or [("value", f"V{stat.value_size}") if stat.value_size > 0 else ("value", object)]
        )
        self._names: tuple[str, ...] = self.dtype.names or ()

    def __repr__(self) -> str:
        return f"<deltafs.Directory {self.path!r}{', closed' if self.is_closed else ''}>"

    def __reduce__(self) -> tuple[type[Directory], tuple[str]]:
        return Directory, (self.path,)

    # ---- Facts

    def _stat(self) -> Stat:
        stat = Stat()
        self.must(lib.deltafs_stat, byref(stat))
        return stat

    @property
    def info(self) -> Info:
        """The directory's properties.

        >>> with deltafs.open("particles") as d:
        ...     d.info.records, d.info.schema
        (11, 'x:f4,y:f8,n:i8')
        """
        stat = self._stat()
        stored = c_uint64()
        self.must(lib.deltafs_bytes_stored, byref(stored))
        return Info(
            version=stat.version,
            partitions=stat.partitions,
            keys=stat.keys.decode(),
            epochs=stat.epochs,
            records=stat.records,
            bytes_raw=stat.bytes_raw,
            bytes_stored=stored.value,
            value_size=stat.value_size,
            schema=stat.schema.decode(),
            uuid=stat.uuid.decode(),
            is_closed=bool(stat.is_closed),
            layout=stat.layout.decode(),
        )

    @property
    def epochs(self) -> np.ndarray:
        """The epochs: an array with the fields label, records, bytes_raw and bytes_stored, in the order of labels.

        >>> with deltafs.open("particles") as d:
        ...     d.epochs["records"].tolist()
        [4, 4, 3]
        """
        if self._epochs is None:
            stat = EpochStat()
            rows = []
            for i in range(self._stat().epochs):
                self.must(lib.deltafs_epoch_stat, i, byref(stat))
                rows.append((stat.label, stat.records, stat.bytes_raw, stat.bytes_stored))
            self._epochs = np.array(rows, _EPOCH)
            self._epochs.flags.writeable = False
        return self._epochs

    @property
    def labels(self) -> np.ndarray:
        """The labels of all epochs (the timesteps), rising."""
        return self.epochs["label"]

    @property
    def partitions(self) -> int:
        """The number of partitions, which several processes can read in parallel (see `records`)."""
        return self._partitions

    def refresh(self) -> None:
        """Add the epochs that were committed after the directory was opened."""
        self.must(lib.deltafs_refresh)
        self._epochs = None

    # ---- Trajectories

    def track(self, ids: Any, epochs: Epochs = None) -> np.ma.MaskedArray:
        """The trajectories of particles: a masked array of shape (epochs, ids) with the columns of `dtype`.

        Row i is epoch `labels[i]`, or, if `epochs` is given, the i-th label in that range. Column j is the particle
        `ids[j]`. Where a particle has no record in an epoch, the element is masked; so is the whole column of an ID that
        does not exist. For a single ID, the shape is (epochs,).

        A particle with several records in one epoch is a ValueError; use `records`, which returns all of them.

        If bytes are damaged, the method raises DamagedError: its `partial` is the array with everything that could
        be read, in which the other elements are masked; its `missing` has the labels of the epochs that are not complete.

        >>> with deltafs.open("particles") as d:
        ...     t = d.track([1, 4])
        >>> t.shape, t["x"].tolist()
        ((3, 2), [[1.0, 4.0], [1.5, 4.5], [2.0, None]])
        """
        range_ = epoch_range(epochs)
        labels = self._labels_in(range_)
        keys = self._keys(ids)
        found = self._lookup(keys.ravel(), range_)
        rows = np.searchsorted(labels, found.labels)
        present = np.zeros((len(labels), keys.size), bool)
        present[rows, found.columns] = True
        if np.count_nonzero(present) != len(rows):
            places, counts = np.unique(rows * keys.size + found.columns, return_counts=True)
            row, column = divmod(int(places[counts > 1][0]), keys.size)
            raise ValueError(
                f"{self.path}: key {keys.flat[column]} has several records in epoch {labels[row]}; "
                "records() returns all of them"
            )
        data = np.zeros(present.shape, self.dtype)
        data[rows, found.columns] = found.values
        mask = np.zeros(present.shape, np.ma.make_mask_descr(self.dtype))
        for name in self._names:
            mask[name] = ~present
        return _whole(np.ma.array(data, mask=mask).reshape((len(labels), *keys.shape)), found.failed)

    # ---- Records

    def epoch(self, label: int, partition: int | None = None) -> np.ndarray:
        """All records of one epoch: an array with the field `key` and the columns of `dtype`.

        The records have no order that means anything; sort by key if you need one. With `partition`, only those of one
        partition. NotFoundError if there is no such epoch. If bytes are damaged, the method raises DamagedError; its
        `partial` has the records that could be read.

        >>> with deltafs.open("particles") as d:
        ...     e = d.epoch(200)
        >>> sorted(e["key"].tolist()), e["x"].max().item()
        ([1, 2, 3], 4.0)
        """
        if u64(label, "label") not in self.labels:
            raise NotFoundError(f"{self.path}: there is no epoch {label}; `labels` has those that there are")
        return self._scan(Range(label, label), partition, with_label=False)

    def records(self, ids: Any = None, epochs: Epochs = None, partition: int | None = None) -> np.ndarray:
        """Records as rows: an array with the fields `key` and `epoch` and the columns of `dtype`.

        With `ids`, the records of these particles: one particle after the other, each in the order of its epochs. IDs
        that do not exist add no rows. Without `ids`, all records of the epochs, or of one of their partitions (from 0
        to `partitions` - 1), in no order that means anything. Damage is reported as by `epoch`.

        >>> with deltafs.open("particles") as d:
        ...     r = d.records([4, 2], epochs=(100, None))
        >>> r[["key", "epoch", "n"]].tolist()
        [(4, 100, 104), (2, 100, 102), (2, 200, 202)]
        """
        range_ = epoch_range(epochs)
        if ids is not None and partition is not None:
            raise ValueError("records: ids or partition, not both")
        if ids is None:
            return self._scan(range_, partition, with_label=True)
        keys = self._keys(ids).ravel()
        found = self._lookup(keys, range_)
        return _whole(self._rows(keys[found.columns], found.labels, found.values), found.failed)

    # ---- Other libraries

    def to_pandas(self, ids: Any = None, epochs: Epochs = None) -> pandas.DataFrame:
        """The rows of `records` as a DataFrame of pandas.

        Columns of type S or V become Python's bytes.
        """
        return _convert.to_pandas(self.records(ids, epochs))

    def to_arrow(self, ids: Any = None, epochs: Epochs = None) -> pyarrow.Table:
        """The rows of `records` as a Table of pyarrow."""
        return _convert.to_arrow(self.records(ids, epochs))

    def to_xarray(self, ids: Any, epochs: Epochs = None) -> xarray.Dataset:
        """The array of `track` as a Dataset of xarray, with the dimensions epoch and id.

        The variable `present` says which particles have a record. Where they have none, floats are NaN, and integers 0.
        """
        range_ = epoch_range(epochs)
        keys = self._keys(ids).ravel()
        return _convert.to_xarray(self.track(keys, epochs), self._labels_in(range_), keys)

    def to_dask(self, epochs: Epochs = None) -> dask.dataframe.DataFrame:
        """The rows of `records` as a DataFrame of Dask, in which each partition of each epoch is a task of its own.

        A task opens the directory by its path, so all workers of a cluster must see it there. The method reads nothing
        but a few properties of the directory.
        """
        labels = self._labels_in(epoch_range(epochs)).tolist()
        parts = [(label, partition) for label in labels for partition in range(self.partitions)]
        return _convert.to_dask(_read_part, parts, self.path, np.empty(0, self._row_dtype(True)))

    # ---- Inside

    def _labels_in(self, range_: Range | None) -> np.ndarray:
        labels = self.labels
        return labels if range_ is None else labels[(labels >= range_.first) & (labels <= range_.last)]

    def _keys(self, ids: Any) -> np.ndarray:
        """IDs as keys of the library: an array of any shape."""
        array = np.asarray(ids) if hasattr(ids, "__array__") else np.array(ids, object)
        if self._is_bytes:
            keys = np.empty(array.size, object)
            keys[:] = [key.encode() if isinstance(key, str) else bytes(memoryview(key)) for key in array.flat]
            return keys.reshape(array.shape)
        if array.dtype.kind == "O":
            return np.array([u64(key, "ID") for key in array.flat], np.uint64).reshape(array.shape)
        if array.dtype.kind not in "iu":
            raise TypeError(f"IDs are integers, not {array.dtype}")
        if array.size and array.min() < 0:
            raise ValueError(f"ID {array.min()} is not from 0 to 2**64 - 1")
        return array.astype(np.uint64)

    def _get_many(self, keys: np.ndarray, range_: Range | None, answers: Any) -> Error | None:
        if not self._is_bytes:
            return self.call(lib.deltafs_get_many, len(keys), keys.ctypes.data, range_pointer(range_), answers)
        names = (c_char_p * len(keys))(*keys)
        sizes = (c_size_t * len(keys))(*map(len, keys))
        return self.call(lib.deltafs_get_many_bytes, len(keys), names, sizes, range_pointer(range_), answers)

    def _lookup(self, keys: np.ndarray, range_: Range | None) -> _Found:
        heads: list[bytes] = []
        values: list[bytes] = []
        counts: list[int] = []
        failed: Error | None = None
        missing: set[int] = set()
        for first in range(0, len(keys), _AT_ONCE):
            part = keys[first : first + _AT_ONCE]
            answers = (ctypes.POINTER(Records) * len(part))()
            status = self._get_many(part, range_, answers)
            for answer in answers:
                counts.append(answer.contents.count if answer else 0)
                if counts[-1] > 0:
                    heads.append(string_at(answer.contents.record, counts[-1] * _RECORD.itemsize))
                    head = np.frombuffer(heads[-1], _RECORD)
                    values += map(string_at, head["value"].tolist(), head["size"].tolist())
                if answer:
                    missing.update(answer.contents.missing[: answer.contents.missing_count])
                lib.deltafs_records_destroy(answer)
            if not isinstance(status, NotFoundError):
                failed = failed or status
        if failed is not None:
            failed.missing = tuple(sorted(missing))
        labels = np.frombuffer(b"".join(heads), _RECORD)["label"]
        return _Found(np.repeat(np.arange(len(keys)), counts), labels, self._values(values), failed)

    def _values(self, values: list[bytes]) -> np.ndarray:
        """Values as an array of `dtype`."""
        if not self.dtype.hasobject:
            return np.frombuffer(b"".join(values), self.dtype)
        array = np.empty(len(values), self.dtype)
        array["value"] = values
        return array

    def _row_dtype(self, with_label: bool) -> np.dtype:
        fields: list[Any] = [("key", object if self._is_bytes else np.uint64)] + [("epoch", np.uint64)] * with_label
        return np.dtype(fields + [(name, self.dtype[name]) for name in self._names])

    def _rows(self, keys: Any, labels: Any, values: np.ndarray) -> np.ndarray:
        rows = np.empty(len(values), self._row_dtype(labels is not None))
        rows["key"] = keys
        if labels is not None:
            rows["epoch"] = labels
        for name in self._names:
            rows[name] = values[name]
        return rows

    def _scan(self, range_: Range | None, partition: int | None, with_label: bool) -> np.ndarray:
        """All records of a range, or of one of its partitions."""
        if self._is_bytes or self.dtype.hasobject:
            return self._scan_each(range_, partition, with_label)
        capacity = int(self.epochs["records"][np.isin(self.labels, self._labels_in(range_))].sum())
        if partition is not None:
            capacity = capacity // self.partitions * 9 // 8 + 1024  # a guess
        to, count = Arrays(), c_size_t()
        chosen = None if partition is None else byref(c_uint32(_partition(partition)))
        while True:
            rows = np.empty(capacity, self._row_dtype(with_label))
            to.capacity = capacity
            to.key_stride = to.label_stride = to.value_stride = rows.itemsize
            to.keys = rows.ctypes.data
            to.labels = rows["epoch"].ctypes.data if with_label else None
            to.values = rows[self._names[0]].ctypes.data
            failed = self.call(lib.deltafs_scan_many, chosen, range_pointer(range_), byref(to), byref(count))
            if count.value <= capacity:
                return _whole(rows[: count.value], failed)
            capacity = count.value

    def _scan_each(self, range_: Range | None, partition: int | None, with_label: bool) -> np.ndarray:
        """The same for keys that are bytes, and values whose sizes differ."""
        keys: list[Any] = []
        labels: list[int] | None = [] if with_label else None
        values: list[bytes] = []
        raised: list[BaseException] = []

        def add(at: int, _: None) -> int:
            try:
                record = Record.from_address(at)
                keys.append(string_at(record.key_bytes, record.key_size) if self._is_bytes else record.key)
                if labels is not None:
                    labels.append(record.label)
                values.append(string_at(record.value, record.size))
                return 0
            except BaseException as exception:  # the library has to return first
                raised.append(exception)
                return 1

        function, pointer = RecordFunction(add), range_pointer(range_)
        if partition is None:
            failed = self.call(lib.deltafs_scan, pointer, function, None, None)
        else:
            failed = self.call(lib.deltafs_scan_partition, _partition(partition), pointer, function, None, None)
        if raised:
            raise raised[0]
        return _whole(self._rows(keys, labels, self._values(values)), failed)


@dataclass
class _Found:
    """The records of several keys."""

    columns: np.ndarray  # of which of the keys
    labels: np.ndarray
    values: np.ndarray
    failed: Error | None


def _partition(number: Any) -> int:
    """A partition as the library takes it; which of them there are the library knows."""
    return min(u64(number, "partition"), 2**32 - 1)


def _whole(answer: Any, failed: Error | None) -> Any:
    """The answer, unless a part of it is missing."""
    if isinstance(failed, (DamagedError, IoError)):
        failed.partial = answer
    if failed is not None:
        raise failed
    return answer


def _read_part(part: tuple[int, int], path: str) -> pandas.DataFrame:
    """A task of Dask."""
    label, partition = part
    with Directory(path) as directory:
        return _convert.to_pandas(directory.records(epochs=label, partition=partition))
