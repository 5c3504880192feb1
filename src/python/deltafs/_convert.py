"""Arrays as objects of other libraries, which are imported when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

if TYPE_CHECKING:
    import dask.dataframe
    import pandas
    import xarray


def _plain(column: np.ndarray) -> np.ndarray:
    """A column of numbers as it is, all others as Python's bytes."""
    return column if column.dtype.kind in "iuf" else column.astype(object)


def to_pandas(rows: np.ndarray) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame({name: _plain(rows[name]) for name in rows.dtype.names or ()})


def repacked(rows: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Some columns of rows as an array of its own."""
    packed = np.empty(len(rows), kind)
    for name in kind.names or ():
        packed[name] = rows[name]
    return packed


def to_xarray(track: np.ma.MaskedArray, labels: np.ndarray, keys: np.ndarray) -> xarray.Dataset:
    import xarray

    data: Any = track.data
    names = track.dtype.names or ()
    mask: Any = np.ma.getmaskarray(track)
    absent = mask[names[0]]
    variables: dict[str, Any] = {}
    for name in names:
        if data.dtype[name].kind == "f":
            data[name][absent] = np.nan
        variables[name] = (("epoch", "id"), data[name])
    variables["present"] = (("epoch", "id"), ~absent)
    return xarray.Dataset(variables, coords={"epoch": labels, "id": keys})


def to_dask(
    read: Callable[..., pandas.DataFrame],
    parts: list[tuple[int, int]],
    path: str,
    fields: bytes | None,
    empty: np.ndarray,
) -> dask.dataframe.DataFrame:
    import dask.dataframe

    if not parts:
        return dask.dataframe.from_pandas(to_pandas(empty), npartitions=1)
    return dask.dataframe.from_map(read, parts, path=path, fields=fields, meta=to_pandas(empty))
