"""Compare an exported openPMD or VTKHDF file with rows that `deltafs select` or `export` has printed as csv.

    export_check_hdf5.py READER FILE CSV

READER reads the file. Of openPMD: dump (h5dump, which knows nothing of openPMD), api (openPMD-api), viewer
(openPMD-viewer). Of VTKHDF: vdump (h5dump), vtk. The order of the rows must be that of the file."""
import collections
import csv
import os
import re
import subprocess
import sys
import tempfile

import numpy

PATHS = {"key": "id", "x": "position/x", "y": "position/y", "z": "position/z", "ux": "momentum/x", "uy": "momentum/y",
         "uz": "momentum/z", "w": "weighting", "id": "value.id", "charge": "value.charge"}


# ---- With HDF5 alone

def h5dump(*arguments):
    run = subprocess.run(["h5dump", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit("h5dump %s: %s" % (" ".join(arguments), run.stderr))
    return run.stdout


def dataset(path, name):
    """The values of a dataset, which are also checked for their byte order."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        text = h5dump("-d", name, "-b", "LE", "-o", out, path)
        kind, bits = re.search(r"DATATYPE +H5T_(?:STD|IEEE)_([IUF])(\d+)LE", text).groups()
        extent = [int(n) for n in re.search(r"SIMPLE \{ \( ([0-9, ]+) \)", text).group(1).split(",")]
        if 0 in extent:
            return numpy.empty(extent)
        return numpy.fromfile(out, "<%s%d" % (kind.lower(), int(bits) // 8)).reshape(extent)


def attribute(path, name):
    found = re.findall(r"\(0\): \"?(.*?)\"?\n", h5dump("-a", name, path))
    return found[0]


# ---- openPMD

def read_dump(path, label, names):
    for name, wanted in (("openPMD", "1.1.0"), ("basePath", "/data/%T/"), ("particlesPath", "particles/"),
                         ("iterationEncoding", "groupBased"), ("iterationFormat", "/data/%T/")):
        if attribute(path, name) != wanted:
            sys.exit("%s is %s" % (name, attribute(path, name)))
    particles = "/data/%d/particles/particles/" % label
    if float(attribute(path, particles + "positionOffset/x/value")) != 0:
        sys.exit("positionOffset")
    return {n: dataset(path, particles + PATHS.get(n, n)) for n in names}


def read_api(path, label, names):
    import openpmd_api
    series = openpmd_api.Series(path, openpmd_api.Access.read_only)
    particles = series.iterations[label].particles["particles"]
    columns = {}
    for name in names:
        record, _, component = PATHS.get(name, name).partition("/")
        columns[name] = particles[record][component or openpmd_api.Record_Component.SCALAR].load_chunk()
    offset = particles["positionOffset"]["x"].load_chunk()
    series.flush()
    if offset.shape != columns["key"].shape or offset.any():
        sys.exit("positionOffset is %s" % offset)
    return columns


def read_viewer(path, label, names):
    """All but the keys as f8, times unitSI; ux, uy and uz over mass and speed of light. With both of its readers of HDF5."""
    from openpmd_viewer import OpenPMDTimeSeries
    wanted = [PATHS[n] if n in ("key", "id", "charge") else n for n in names]
    found = []
    for backend in "h5py", "openpmd-api":
        series = OpenPMDTimeSeries(os.path.dirname(path), check_all_files=False, backend=backend)
        found.append(series.get_particle(wanted, species="particles", iteration=label))
    for name, one, other in zip(names, *found):
        if not numpy.array_equal(one, other, equal_nan=True):
            sys.exit("%s: openPMD-viewer's readers differ" % name)
    return dict(zip(names, found[0]))


def check_openpmd(read, path, names, rows, is_close):
    epochs = collections.defaultdict(list)
    for row in rows:
        epochs[int(row[1])].append(row)
    if read is not read_dump:
        check_labels(path, epochs)
    for label, of_epoch in epochs.items():
        got = read(path, label, [n for n in names if n != "epoch"])
        for name, texts in zip(names, zip(*of_epoch)):
            if name != "epoch":
                check_column("%s of epoch %d" % (name, label), got[name], texts, is_close)


def check_labels(path, epochs):
    """All epochs are seen, with their times."""
    import openpmd_api
    series = openpmd_api.Series(path, openpmd_api.Access.read_only)
    times = {label: i.time * i.time_unit_SI for label, i in series.iterations.items()}
    if sorted(times) != sorted(epochs):
        sys.exit("epochs %s instead of %s" % (sorted(times), sorted(epochs)))


# ---- VTKHDF

def read_vdump(path):
    if attribute(path, "/VTKHDF/Type") != "PolyData" or attribute(path, "/VTKHDF/Version") != "2, 0":
        sys.exit("not VTKHDF 2.0")
    point_data = set(re.findall(r"dataset +/VTKHDF/PointData/(\S+)", h5dump("-n", path)))
    data = {n: dataset(path, "/VTKHDF/PointData/" + n) for n in point_data}
    offsets, ids = dataset(path, "/VTKHDF/Lines/Offsets"), dataset(path, "/VTKHDF/Lines/Connectivity")
    lines = [ids[a:b] for a, b in zip(offsets, offsets[1:])]
    return dataset(path, "/VTKHDF/Points"), data, dataset(path, "/VTKHDF/CellData/key"), lines


def read_vtk(path):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOHDF import vtkHDFReader
    reader = vtkHDFReader()
    reader.SetFileName(path)
    reader.Update()
    poly = reader.GetOutput()
    if poly.GetNumberOfLines() != poly.GetNumberOfCells():
        sys.exit("%d lines of %d cells" % (poly.GetNumberOfLines(), poly.GetNumberOfCells()))
    data, points = poly.GetPointData(), vtk_to_numpy(poly.GetPoints().GetData())
    arrays = {data.GetArrayName(i): vtk_to_numpy(data.GetArray(i)) for i in range(data.GetNumberOfArrays())}
    cells = poly.GetLines()
    offsets, ids = vtk_to_numpy(cells.GetOffsetsArray()), vtk_to_numpy(cells.GetConnectivityArray())
    lines = [ids[a:b] for a, b in zip(offsets, offsets[1:])]
    return points, arrays, vtk_to_numpy(poly.GetCellData().GetArray("key")), lines


def check_vtkhdf(read, path, names, rows):
    points, data, keys, lines = read(path)
    columns = list(zip(*rows))
    for name, texts in zip(names, columns):
        if name in "xyz":
            check_column(name, points[:, "xyz".index(name)], texts, False)
        elif name != "key":
            check_column(name, data[name], texts, False)
    others = set(data) - set(names) - {"time"}
    if others:
        sys.exit("arrays besides those wanted: %s" % others)
    wanted = collections.defaultdict(list)
    for i, key in enumerate(columns[0]):
        wanted[int(key)].append(i)
    if len(set(keys.tolist())) != len(keys) or len(keys) != len(lines):
        sys.exit("%d keys of %d lines" % (len(keys), len(lines)))
    if {int(k): line.tolist() for k, line in zip(keys, lines)} != wanted:
        sys.exit("the lines do not have the points of their keys")


# ---- Comparing

def check_column(name, got, texts, is_close):
    kind = numpy.asarray(got).dtype
    want = numpy.array([float(t) for t in texts] if kind.kind == "f" else [int(t) for t in texts], kind)
    if got.shape != want.shape:
        sys.exit("%s: %s rows instead of %s" % (name, got.shape, want.shape))
    same = numpy.isclose(got, want, 1e-15, 0, True) if is_close else (got == want) | (got != got) & (want != want)
    if not same.all():
        sys.exit("%s: %s instead of %s" % (name, got[~same][:5], want[~same][:5]))


def main():
    reader, path, wanted = sys.argv[1:]
    with open(wanted, newline="") as f:
        names, *rows = csv.reader(f)
    read = globals()["read_" + reader]
    if reader in ("vdump", "vtk"):
        check_vtkhdf(read, path, names, rows)
    else:
        check_openpmd(read, path, names, rows, reader == "viewer")


main()
