"""Directories: the trajectories of particles, whole epochs, selected records."""

from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p, string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

from . import _convert
from ._arrow import ArrowTable
from ._handle import U64_MAX, Epochs, Handle, columns, epoch_range, range_pointer, u64
from ._library import (
    Arrays,
    AttributeStruct,
    DamagedError,
    EpochStat,
    Error,
    InvalidError,
    IoError,
    KeyList,
    ModeError,
    NotFoundError,
    Range,
    Record,
    RecordFunction,
    Records,
    SelectOptions,
    Stat,
    error,
    lib,
)
from ._select import Selection, view

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import xarray

#: Which columns: None for all stored and computed ones, or their names: "x,z", or ["x", "z"].
Fields = Optional[Union[str, Sequence[str]]]
_Part = Optional[Union[int, "tuple[Any, ...]"]]  # a partition, or the arguments of a range of keys

_RECORD: Any = np.dtype(Record)  # as the library lays them out
_EPOCH = np.dtype([("label", "u8"), ("records", "u8"), ("bytes_raw", "u8"), ("bytes_stored", "u8")])
_NUMBERS = {1: "<f8", 2: "<i8", 3: "<u8"}  # enum deltafs_attribute_type
_EXPRESSION = 5
_TEXTS = (4, _EXPRESSION)
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


@dataclass(frozen=True)
class Attribute:
    """An attribute as it is valid for an epoch."""

    name: str
    value: float | int | str | np.ndarray | None  #: None if the attribute only gives a stored column's unit
    from_label: int  #: the label from which on it is valid
    is_expression: bool  #: whether the value defines a computed column
    unit_si: float  #: by how much a value is multiplied to be in SI units; 0: not known
    unit_dimension: tuple[float, ...]  #: powers of length, mass, time, current, temperature, amount, luminous intensity


class Directory(Handle):
    """A directory of DeltaFS that is open for reading. Made by `deltafs.open`.

    The columns, `dtype`, are those of the schema, and then the computed ones. Methods with a parameter `fields` return
    only these columns, which can also be attributes that are one number. Without a schema there is one column, `value`:
    of type V if all values have the same size, and of Python's bytes otherwise. A column that is called key or epoch has the name
    value.key or value.epoch here. Keys are numbers of type uint64; in a directory with keys=bytes they are bytes.

    Several threads may use one Directory, but they wait for each other. Open one for each thread to read in parallel. A
    Directory that is sent to another process (pickled) is opened again there.

    >>> with deltafs.open("particles") as d:
    ...     d.labels.tolist(), d.dtype.names
    ([0, 100, 200], ('x', 'y', 'n', 'r'))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.selections: weakref.WeakSet[Selection] = weakref.WeakSet()  # those that are open
        super().__init__(os.path.abspath(path), lambda name, out: lib.deltafs_open(name, None, out), lib.deltafs_close)
        self._epochs: np.ndarray | None = None
        self._refuse_index()
        stat = self._stat()
        self._is_bytes = stat.keys == b"bytes"
        self._partitions = stat.partitions
        whole: Any = [("value", f"V{stat.value_size}" if stat.value_size > 0 else object)]
        self._stored = np.dtype(columns(stat.schema.decode()) or whole)
        self._all: np.dtype | None = None

    def __repr__(self) -> str:
        return f"<deltafs.Directory {self.path!r}{', closed' if self.is_closed else ''}>"

    def __reduce__(self) -> tuple[type[Directory], tuple[str]]:
        return Directory, (self.path,)

    def _refuse_index(self) -> None:
        """An index over files is a directory on disk, but its records are the numbers of rows."""
        index = c_void_p()
        status = lib.deltafs_fileindex_open(os.fsencode(self.path), None, byref(index))
        failed = error(status) if status else ModeError(f"{self.path}: an index over files; deltafs.open_index opens it")
        if isinstance(failed, NotFoundError):
            return
        lib.deltafs_fileindex_close(index)
        self.close()
        raise failed

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
    def dtype(self) -> np.dtype:
        """All columns: those of the schema, and then the computed ones.

        >>> with deltafs.open("particles") as d:
        ...     d.dtype.names
        ('x', 'y', 'n', 'r')
        """
        if self._all is None:
            self._all = self._stored if self._stored.hasobject else self._dtype_of(None)
        return self._all

    @property
    def attributes(self) -> dict[str, float | int | str | np.ndarray]:
        """The attributes by their names: numbers, arrays, texts, and the expressions of computed columns.

        The values are those for the last epoch; `attribute` gets them for others, and units.

        >>> with deltafs.open("particles") as d:
        ...     d.attributes["dt"], d.attributes["r"]
        (0.5, 'sqrt(x**2 + y**2)')
        """
        out, names = AttributeStruct(), []
        for i in range(self._stat().attributes):
            self.must(lib.deltafs_attribute_at, i, byref(out))
            names.append(out.name.decode())
        values = {name: self.attribute(name).value for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def attribute(self, name: str, label: int | None = None) -> Attribute:
        """An attribute as it is valid for the epoch with this label, by default for the last one.

        NotFoundError if there is no such attribute, or if it is valid from a later epoch on.

        >>> with deltafs.open("particles") as d:
        ...     d.attribute("time", 100).value, d.attribute("time").from_label
        (50.0, 200)
        """
        out = AttributeStruct()
        at = 2**64 - 1 if label is None else u64(label, "label")

        def get(handle: c_void_p) -> int:  # the value belongs to the handle
            status: int = lib.deltafs_attribute_get(handle, name.encode(), at, byref(out))
            if status == 0:
                found.append(_attribute(out))
            return status

        found: list[Attribute] = []
        self.must(get)
        return found[0]

    @property
    def partitions(self) -> int:
        """The number of partitions, which several processes can read in parallel (see `records`)."""
        return self._partitions

    def refresh(self) -> None:
        """Add the epochs and attributes that were committed after the directory was opened.

        ValueError if a selection is open.
        """
        with self._lock:
            if self.selections:
                raise ValueError(f"{self.path}: a selection is open; close it first")
            self.must(lib.deltafs_refresh)
            self._epochs = self._all = None

    # ---- Trajectories

    def track(self, ids: Any, epochs: Epochs = None, fields: Fields = None) -> np.ma.MaskedArray:
        """The trajectories of particles: a masked array of shape (epochs, ids) with the columns.

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
        found = self._lookup(keys.ravel(), range_, fields)
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
        data = np.zeros(present.shape, found.values.dtype)
        data[rows, found.columns] = found.values
        mask: Any = np.zeros(present.shape, np.ma.make_mask_descr(data.dtype))
        for name in data.dtype.names or ():
            mask[name] = ~present
        return _whole(np.ma.array(data, mask=mask).reshape((len(labels), *keys.shape)), found.failed)

    # ---- Records

    def epoch(self, label: int, partition: int | None = None, fields: Fields = None) -> np.ndarray:
        """All records of one epoch: an array with the field `key` and the columns.

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
        return self._scan(Range(label, label), partition, fields, with_label=False)

    def records(
        self, ids: Any = None, epochs: Epochs = None, partition: int | None = None, fields: Fields = None
    ) -> np.ndarray:
        """Records as rows: an array with the fields `key` and `epoch` and the columns.

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
            return self._scan(range_, partition, fields, with_label=True)
        keys = self._keys(ids).ravel()
        found = self._lookup(keys, range_, fields)
        return _whole(self._rows(keys[found.columns], found.labels, found.values), found.failed)

    def scan_range(
        self, first: Any = None, last: Any = None, epochs: Epochs = None, fields: Fields = None
    ) -> np.ndarray:
        """Records whose key is at least `first` and at most `last`, ordered by epoch, then by key.

        The rows have the fields `key` and `epoch` and the columns. None: no such end. Only what the range touches is
        read; but if keys are bytes, whole epochs are. Damage is reported as by `epoch`.

        >>> with deltafs.open("particles") as d:
        ...     r = d.scan_range(2, None, epochs=200)
        >>> r[["key", "n"]].tolist()
        [(2, 202), (3, 203)]
        """
        if self._is_bytes:
            part = (*_key_and_size(first), *_key_and_size(last))
            return self._scan(epoch_range(epochs), part, fields, with_label=True)
        keys = (u64(0 if first is None else first, "first"), u64(U64_MAX if last is None else last, "last"))
        return self._scan(epoch_range(epochs), keys, fields, with_label=True)

    # ---- Select

    def select(
        self,
        where: str | None = None,
        *,
        epoch: int | None = None,
        epochs: Epochs = None,
        top: int | None = None,
        by: str | None = None,
        fields: Fields = None,
        keys: Any = None,
        and_keys: Any = None,
        not_keys: Any = None,
    ) -> np.ndarray:
        """The records that fulfil a condition: an array with the fields `key` and `epoch` and the columns.

        `where` is an expression over columns, attributes, `key` and `epoch`, such as "ux**2 + uy**2 > 1"; None takes
        all records. The rows are ordered by epoch, then by key. The options, all of them keywords:

        epoch, epochs: one label, or a range as for `track`
        top, by:       only so many rows, those with the largest values of the expression `by`, the largest first
        fields:        only these columns, or none: (); only they, and those in the expressions, are read from the blocks
        keys, and_keys, not_keys: only particles that are in these sets of IDs, or are not in the last one

        deltafs_query(3) has the language. A mistake in an expression is an InvalidError. If bytes are damaged, the method
        raises DamagedError; its `partial` has the rows that could be read.

        >>> with deltafs.open("particles") as d:
        ...     d.select("x > 2 and n % 2 == 0", epoch=200)[["key", "x"]].tolist()
        ...     d.select(top=2, by="x", epochs=(None, 100), fields="x").tolist()
        [(2, 3.0)]
        [(4, 100, 4.5), (4, 0, 4.0)]
        """
        with self.select_chunks(
            where,
            epoch=epoch,
            epochs=epochs,
            top=top,
            by=by,
            fields=fields,
            keys=keys,
            and_keys=and_keys,
            not_keys=not_keys,
        ) as chunks:
            return self._joined(chunks)

    def select_chunks(
        self,
        where: str | None = None,
        *,
        epoch: int | None = None,
        epochs: Epochs = None,
        top: int | None = None,
        by: str | None = None,
        fields: Fields = None,
        keys: Any = None,
        and_keys: Any = None,
        not_keys: Any = None,
    ) -> Selection:
        """The rows of `select` as an iterator over arrays, of which only one is in memory at a time.

        >>> with deltafs.open("particles") as d:
        ...     sum(rows["x"].sum().item() for rows in d.select_chunks("x > 1"))
        30.0
        """
        if epoch is not None and epochs is not None:
            raise ValueError("select: epoch or epochs, not both")
        if top == 0:
            raise ValueError("select: top is at least 1")
        if isinstance(epoch, (tuple, list)):
            raise TypeError("select: epoch is one label; epochs= takes a range")
        options = self._select_options(fields, epoch_range(epochs if epoch is None else u64(epoch, "label")))
        options.where = None if where is None else where.encode()
        options.by = None if by is None else by.encode()
        options.top = 0 if top is None else u64(top, "top")
        sets = [None if ids is None else self._key_list(ids) for ids in (keys, and_keys, not_keys)]
        options.keys, options.and_keys, options.not_keys = (ctypes.pointer(set_) if set_ else None for set_ in sets)
        return self._selection(options)

    # ---- Other libraries

    def to_pandas(self, ids: Any = None, epochs: Epochs = None, fields: Fields = None) -> pandas.DataFrame:
        """The rows of `records` as a DataFrame of pandas.

        Columns of type S or V become Python's bytes. The rows of `select` are one by pandas.DataFrame(rows).
        """
        return _convert.to_pandas(self.records(ids, epochs, fields=fields))

    def to_arrow(self, ids: Any = None, epochs: Epochs = None, fields: Fields = None) -> ArrowTable:
        """The rows of `records` for all programs that take Arrow's data: pyarrow.table(d.to_arrow()), and so on.

        Neither Arrow nor pyarrow is needed. For other rows, such as those of `select`, use `deltafs.to_arrow`.
        """
        return ArrowTable(self.records(ids, epochs, fields=fields))

    def to_xarray(self, ids: Any, epochs: Epochs = None, fields: Fields = None) -> xarray.Dataset:
        """The array of `track` as a Dataset of xarray, with the dimensions epoch and id.

        The variable `present` says which particles have a record. Where they have none, floats are NaN, and integers 0.
        """
        range_ = epoch_range(epochs)
        keys = self._keys(ids).ravel()
        return _convert.to_xarray(self.track(keys, epochs, fields), self._labels_in(range_), keys)

    def to_dask(self, epochs: Epochs = None, fields: Fields = None) -> dask.dataframe.DataFrame:
        """The rows of `records` as a DataFrame of Dask, in which each partition of each epoch is a task of its own.

        A task opens the directory by its path, so all workers of a cluster must see it there. The method reads nothing
        but a few properties of the directory.
        """
        labels = self._labels_in(epoch_range(epochs)).tolist()
        parts = [(label, partition) for label in labels for partition in range(self.partitions)]
        wanted = _field_names(fields)
        empty = np.empty(0, self._row_dtype(self._dtype(fields), True))
        return _convert.to_dask(_read_part, parts, self.path, wanted, empty)

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

    def _end(self) -> None:
        for selection in list(self.selections):
            selection.close()

    def _dtype_of(self, fields: bytes | None) -> np.dtype:
        """The columns `fields` as the library makes them."""
        schema: list[str] = []

        def get(handle: c_void_p) -> int:
            made = c_void_p()
            status: int = lib.deltafs_columns_open(handle, fields, byref(made))
            if status == 0:
                schema.append(lib.deltafs_columns_schema(made).decode())
                lib.deltafs_columns_close(made)
            return status

        self.must(get)
        return self._described(schema[0], fields)

    def _described(self, schema: str, fields: bytes | None) -> np.dtype:
        return np.dtype(columns(schema)) if schema or fields is not None else self._stored

    def _dtype(self, fields: Fields) -> np.dtype:
        names = _field_names(fields)
        return self.dtype if names is None else self._dtype_of(names) if names else np.dtype([])

    def _made(self, values: np.ndarray, keys: np.ndarray, labels: np.ndarray, fields: Fields) -> np.ndarray:
        """The columns `fields` of stored values, each of which has a key and a label."""
        kind, names = self._dtype(fields), _field_names(fields)
        if kind == self._stored:
            return values
        if kind.itemsize == 0:
            return np.empty(len(values), kind)
        made = np.empty(len(values), kind)

        def make(handle: c_void_p) -> int:
            maker, out = c_void_p(), c_void_p()
            status: int = lib.deltafs_columns_open(handle, names, byref(maker))
            for first in range(0, len(values), _AT_ONCE):
                part = slice(first, min(first + _AT_ONCE, len(values)))
                heads = np.zeros(part.stop - first, _RECORD)
                if not self._is_bytes:  # no column can be computed from those
                    heads["key"] = keys[part]
                heads["label"] = labels[part]
                heads["size"] = self._stored.itemsize
                heads["value"] = values.ctypes.data + values.strides[0] * np.arange(first, part.stop)
                if status == 0:
                    status = lib.deltafs_columns_rows(maker, len(heads), heads.ctypes.data, byref(out))
                if status == 0:
                    made[part] = self._values_at(out.value or 0, len(heads), kind)
            lib.deltafs_columns_close(maker)
            return status

        self.must(make)
        return made

    def _values_at(self, address: int, count: int, kind: np.dtype) -> np.ndarray:
        """The values of records whose values lie one after the other, without a copy."""
        if kind.itemsize == 0:
            return np.empty(count, kind)
        heads = np.frombuffer(view(address, count * _RECORD.itemsize), _RECORD)
        return np.frombuffer(view(int(heads["value"][0]), count * kind.itemsize), kind, count)

    def _get_many(self, keys: np.ndarray, range_: Range | None, answers: Any) -> Error | None:
        if not self._is_bytes:
            return self.call(lib.deltafs_get_many, len(keys), keys.ctypes.data, range_pointer(range_), answers)
        names = (c_char_p * len(keys))(*keys)
        sizes = (c_size_t * len(keys))(*map(len, keys))
        return self.call(lib.deltafs_get_many_bytes, len(keys), names, sizes, range_pointer(range_), answers)

    def _lookup(self, keys: np.ndarray, range_: Range | None, fields: Fields) -> _Found:
        self._dtype(fields)  # mistakes are found first
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
        found = np.frombuffer(b"".join(heads), _RECORD)
        made = self._made(self._values(values), found["key"], found["label"], fields)
        return _Found(np.repeat(np.arange(len(keys)), counts), found["label"], made, failed)

    def _values(self, values: list[bytes]) -> np.ndarray:
        """Stored values as an array."""
        if not self._stored.hasobject:
            return np.frombuffer(b"".join(values), self._stored)
        array = np.empty(len(values), self._stored)
        array["value"] = values
        return array

    def _row_dtype(self, kind: np.dtype, with_label: bool) -> np.dtype:
        fields: list[Any] = [("key", object if self._is_bytes else np.uint64)] + [("epoch", np.uint64)] * with_label
        return np.dtype(fields + [(name, kind[name]) for name in kind.names or ()])

    def _rows(self, keys: Any, labels: Any, values: np.ndarray) -> np.ndarray:
        rows = np.empty(len(values), self._row_dtype(values.dtype, labels is not None))
        rows["key"] = keys
        if labels is not None:
            rows["epoch"] = labels
        for name in values.dtype.names or ():
            rows[name] = values[name]
        return rows

    def _key_list(self, ids: Any) -> KeyList:
        keys = self._keys(ids).ravel()
        list_ = KeyList(count=len(keys))
        if self._is_bytes:
            names = (c_char_p * max(len(keys), 1))(*keys)
            sizes = (c_size_t * max(len(keys), 1))(*map(len, keys))
            list_.bytes, list_.size = ctypes.addressof(names), ctypes.addressof(sizes)
            list_.memory = names, sizes  # lives as long as the list
        else:
            list_.number = keys.ctypes.data
            list_.memory = keys
        return list_

    def _select_options(self, fields: Fields, range_: Range | None) -> SelectOptions:
        options = SelectOptions()
        options.fields = _field_names(fields)
        options.range = None if range_ is None else ctypes.pointer(range_)
        return options

    def _selection(self, options: SelectOptions) -> Selection:
        dtypes: list[np.dtype] = []

        def describe(schema: str) -> np.dtype:
            dtypes.append(self._described(schema, options.fields))
            return self._row_dtype(dtypes[0], True)

        def take(address: int, count: int) -> np.ndarray:
            heads = np.frombuffer(view(address, count * _RECORD.itemsize), _RECORD)
            keys: Any = heads["key"]
            if self._is_bytes:
                keys = list(map(string_at, heads["key_bytes"].tolist(), heads["key_size"].tolist()))
            if dtypes[0].hasobject:
                values = self._values(list(map(string_at, heads["value"].tolist(), heads["size"].tolist())))
            else:
                values = self._values_at(address, count, dtypes[0])
            return self._rows(keys, heads["label"], values)

        return Selection(self, options, take, describe)

    def _joined(self, chunks: Selection) -> np.ndarray:
        """All rows of a selection."""
        found, failed = [np.empty(0, chunks.dtype)], None
        try:
            found.extend(chunks)
        except (DamagedError, IoError) as error:
            failed = error
        return _whole(np.concatenate(found), failed)

    def _scan(self, range_: Range | None, part: _Part, fields: Fields, with_label: bool) -> np.ndarray:
        """All records of a range, of one of its partitions, or of a range of keys."""
        if part is not None and not isinstance(part, tuple) and u64(part, "partition") >= self.partitions:
            raise InvalidError(f"{self.path}: there is no partition {part}; there are {self.partitions}")
        if self._dtype(fields) != self._stored:
            return self._scan_columns(range_, part, fields, with_label)
        return self._scan_stored(range_, part, with_label)

    def _scan_stored(self, range_: Range | None, part: _Part, with_label: bool) -> np.ndarray:
        if self._is_bytes or self._stored.hasobject:
            return self._scan_each(range_, part, with_label)
        capacity = int(self.epochs["records"][np.isin(self.labels, self._labels_in(range_))].sum())
        if isinstance(part, tuple):
            capacity = min(capacity, 1 << 16)  # a guess
        elif part is not None:
            capacity = capacity // self.partitions * 9 // 8 + 1024  # another
        to, count, pointer = Arrays(), c_size_t(), range_pointer(range_)
        while True:
            rows = np.empty(capacity, self._row_dtype(self._stored, with_label))
            to.capacity = capacity
            to.key_stride = to.label_stride = to.value_stride = rows.itemsize
            to.keys = rows.ctypes.data
            to.labels = rows["epoch"].ctypes.data if with_label else None
            to.values = rows[(self._stored.names or ())[0]].ctypes.data
            if isinstance(part, tuple):
                failed = self.call(lib.deltafs_scan_range_many, *part, pointer, byref(to), byref(count))
            else:
                chosen = None if part is None else byref(c_uint32(part))
                failed = self.call(lib.deltafs_scan_many, chosen, pointer, byref(to), byref(count))
            if count.value <= capacity:
                return _whole(rows[: count.value], failed)
            capacity = count.value

    def _scan_columns(self, range_: Range | None, part: _Part, fields: Fields, with_label: bool) -> np.ndarray:
        """The same with other columns than all stored ones."""
        failed = None
        try:
            rows = self._scan_stored(range_, part, with_label=True)
        except (DamagedError, IoError) as error:
            rows, failed = error.partial, error
        kind = self._dtype(fields)
        stored = self._stored.names or ()
        if all(name in stored for name in kind.names or ()):
            made = rows
        else:
            made = self._made(_convert.repacked(rows, self._stored), rows["key"], rows["epoch"], fields)
        out = np.empty(len(rows), self._row_dtype(kind, with_label))
        for name in out.dtype.names or ():
            out[name] = (rows if name in ("key", "epoch") else made)[name]
        return _whole(out, failed)

    def _scan_each(self, range_: Range | None, part: _Part, with_label: bool) -> np.ndarray:
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
        if part is None:
            failed = self.call(lib.deltafs_scan, pointer, function, None, None)
        elif isinstance(part, tuple):
            call = lib.deltafs_scan_range_bytes if self._is_bytes else lib.deltafs_scan_range
            failed = self.call(call, *part, pointer, function, None, None)
        else:
            failed = self.call(lib.deltafs_scan_partition, part, pointer, function, None, None)
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


def _key_and_size(key: Any) -> tuple[bytes | None, int]:
    if key is None:
        return None, 0
    name = key.encode() if isinstance(key, str) else bytes(memoryview(key))
    return name, len(name)


def _field_names(fields: Fields) -> bytes | None:
    if fields is None:
        return None
    return (fields if isinstance(fields, str) else ",".join(fields)).encode()


def _attribute(a: AttributeStruct) -> Attribute:
    value: Any = None
    if a.type in _NUMBERS:
        value = np.frombuffer(string_at(a.value, 8 * a.count), _NUMBERS[a.type])
        value = value[0].item() if a.count == 1 else value
    elif a.type in _TEXTS:
        value = string_at(a.value).decode()
    return Attribute(
        name=a.name.decode(),
        value=value,
        from_label=a.from_,
        is_expression=a.type == _EXPRESSION,
        unit_si=a.unit_si,
        unit_dimension=tuple(a.unit_dimension),
    )


def _whole(answer: Any, failed: Error | None) -> Any:
    """The answer, unless a part of it is missing."""
    if isinstance(failed, (DamagedError, IoError)):
        failed.partial = answer
    if failed is not None:
        raise failed
    return answer


def _read_part(part: tuple[int, int], path: str, fields: bytes | None) -> pandas.DataFrame:
    """A task of Dask."""
    label, partition = part
    names = None if fields is None else fields.decode()
    with Directory(path) as directory:
        return _convert.to_pandas(directory.records(epochs=label, partition=partition, fields=names))
