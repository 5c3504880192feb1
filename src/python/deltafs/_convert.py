"""Arrays as objects of other libraries, which are imported when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import pyarrow
    import xarray


def _plain(column: np.ndarray) -> np.ndarray:
    """A column of numbers as it is, all others as Python's bytes."""
    return column if column.dtype.kind in "iuf" else column.astype(object)


def to_pandas(rows: np.ndarray) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame({name: _plain(rows[name]) for name in rows.dtype.names})


def to_arrow(rows: np.ndarray) -> pyarrow.Table:
    import pyarrow

    columns = []
    for name in rows.dtype.names:
        kind = rows.dtype[name]
        fixed = pyarrow.binary(kind.itemsize if kind.kind == "V" else -1)
        columns.append(pyarrow.array(_plain(rows[name]), None if kind.kind in "iuf" else fixed))
    return pyarrow.Table.from_arrays(columns, names=list(rows.dtype.names))


def to_xarray(track: np.ma.MaskedArray, labels: np.ndarray, keys: np.ndarray) -> xarray.Dataset:
    import xarray

    data = track.data
    absent = np.ma.getmaskarray(track)[track.dtype.names[0]]
    variables: dict[str, Any] = {}
    for name in track.dtype.names:
        if data.dtype[name].kind == "f":
            data[name][absent] = np.nan
        variables[name] = (("epoch", "id"), data[name])
    variables["present"] = (("epoch", "id"), ~absent)
    return xarray.Dataset(variables, coords={"epoch": labels, "id": keys})


def to_dask(
    read: Callable[..., pandas.DataFrame], parts: list[tuple[int, int]], path: str, empty: np.ndarray
) -> dask.dataframe.DataFrame:
    import dask.dataframe

    if not parts:
        return dask.dataframe.from_pandas(to_pandas(empty), npartitions=1)
    return dask.dataframe.from_map(read, parts, path=path, meta=to_pandas(empty))
