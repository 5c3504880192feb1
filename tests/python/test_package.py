"""Tests of the Python package; python_package.sh runs them in an empty folder.

DELTAFS_COMMAND, DELTAFS_MPI_COMMAND and PUT_RECORDS name programs of the build, HEADER is deltafs.h, and REAL the
folder of a real run's dumps.
"""

import ctypes
import csv
import doctest
import glob
import importlib
import io
import math
import multiprocessing
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import threading
import unittest

import numpy as np

import deltafs
from deltafs import _arrow, _library

LABELS = [0, 100, 200]
COMMAND = os.environ["DELTAFS_COMMAND"]


def run(*words, text=""):
    return subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout


def put(path, lines, *options):
    text = "".join(f"{label} {key} {value.hex() or '-'}\n" for label, key, value in lines)
    run(os.environ["PUT_RECORDS"], path, *options, text=text)


def value(key, label):
    """The columns x, y and n of a particle."""
    x = key + label / 200
    return x, -x, label + key


def index_files(index, paths, options):
    """Index files, by the C API."""
    lib = deltafs._lib
    settings, indexer = ctypes.c_void_p(), ctypes.c_void_p()
    _library.check(lib.deltafs_options_create(ctypes.byref(settings)))
    for name, text in options.items():
        _library.check(lib.deltafs_options_set(settings, name.encode(), text.encode()))
    _library.check(lib.deltafs_indexer_open(index.encode(), None, None, ctypes.byref(indexer)))
    for path in paths:
        _library.check(lib.deltafs_indexer_add_file(indexer, path.encode(), settings, None))
    _library.check(lib.deltafs_indexer_close(indexer))
    lib.deltafs_options_destroy(settings)


def setUpModule():
    rows = [(label, key, struct.pack("<fdq", *value(key, label))) for label in LABELS for key in (1, 2, 3, 4)]
    put("particles", rows[:-1], "schema=x:f4,y:f8,n:i8", "partitions=3")
    for words in (["dt=0.5"], *([f"time={label / 2}", "--from", str(label)] for label in LABELS), ["r==sqrt(x**2 + y**2)"]):
        run(COMMAND, "attr", "particles", *words)
    with open("hello", "w") as f:
        f.write("hello world\n")
    run(COMMAND, "cp", "hello", "deltafs:out")
    for label, x in ((10, 0.5), (20, 0.75)):
        np.array([(5, 1), (7, x), (9, 2)], [("id", "<u8"), ("x", "<f4")]).tofile(f"dump.{label}")
    index_files("dumps.keys", ["dump.10", "dump.20"], {"schema": "id:u8,x:f4", "key": "id"})


def damage(path, at=-40):
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))


def data_logs(path):
    return sorted(glob.glob(f"{path}/??/*.data"))


class Examples(unittest.TestCase):
    def test_docstrings(self):
        attempted = 0
        for name in ("", "._arrow", "._directory", "._fileindex", "._logical", "._select"):
            result = doctest.testmod(importlib.import_module("deltafs" + name), extraglobs={"deltafs": deltafs}, verbose=False)
            self.assertEqual(result.failed, 0, name)
            attempted += result.attempted
        self.assertGreater(attempted, 10)


class Errors(unittest.TestCase):
    def test_each_status_has_a_class(self):
        with open(os.environ["HEADER"]) as f:
            enum = f.read().split("/* Names in a namespace", 1)[0]  # which the package has no calls for
            header = dict(re.findall(r"DELTAFS_ERR_(\w+) = (-\d+)", enum))
        self.assertGreater(len(header), 10)
        self.assertEqual(sorted(map(int, header.values())), sorted(_library.ERRORS))
        for name, number in header.items():
            words = {"MEMORY": "NoMemory"}.get(name) or "".join(word.capitalize() for word in name.split("_"))
            self.assertIs(_library.ERRORS[int(number)], getattr(deltafs, words + "Error"))

    def test_messages(self):
        with self.assertRaisesRegex(deltafs.NotFoundError, "nothing"):
            deltafs.open("nothing")
        with self.assertRaises(FileNotFoundError):
            deltafs.open_file("nothing")
        with self.assertRaisesRegex(deltafs.NotDeltafsError, "hello"):
            deltafs.open("hello")
        with deltafs.open("particles") as d:
            with self.assertRaisesRegex(deltafs.NotFoundError, "no epoch 7"):
                d.epoch(7)
            with self.assertRaisesRegex(deltafs.InvalidError, "partition 3"):
                d.epoch(0, partition=3)

    def test_library_is_not_found(self):
        environment = dict(os.environ, DELTAFS_LIBRARY="/nothing.so")
        result = subprocess.run(
            [sys.executable, "-c", "import deltafs"], env=environment, capture_output=True, text=True, check=False
        )
        self.assertIn("ImportError: /nothing.so", result.stderr)
        self.assertIn("set DELTAFS_LIBRARY", result.stderr)


class Directories(unittest.TestCase):
    def test_info(self):
        with deltafs.open("particles") as d:
            printed = eval(run(COMMAND, "info", "--json", "particles"), {"true": True, "false": False, "null": None})
            for name in ("partitions", "records", "bytes_raw", "bytes_stored", "uuid"):
                self.assertEqual(getattr(d.info, name), printed[name], name)
            self.assertEqual((d.info.keys, d.info.layout, d.info.value_size), ("u64", "partitioned", 20))
            self.assertTrue(d.info.is_closed)
            self.assertEqual(d.epochs["label"].tolist(), LABELS)
            self.assertEqual(d.epochs["bytes_raw"].tolist(), [112, 112, 84])
            self.assertEqual(d.partitions, 3)
            self.assertIn("particles", repr(d))

    def test_track(self):
        with deltafs.open("particles") as d:
            t = d.track([4, 1, 99])
            self.assertEqual(t.shape, (3, 3))
            self.assertEqual(t.dtype, np.dtype([("x", "<f4"), ("y", "<f8"), ("n", "<i8"), ("r", "<f8")]))
            for row, label in enumerate(LABELS):
                for column, key in enumerate((4, 1, 99)):
                    if key == 99 or (key, label) == (4, 200):
                        self.assertTrue(all(t.mask[row, column]))
                    else:
                        x, y, n = value(key, label)
                        self.assertEqual(tuple(t[row, column]), (x, y, n, math.hypot(x, y)))
            self.assertEqual(d.track(2).shape, (3,))
            self.assertEqual(d.track([]).shape, (3, 0))
            self.assertEqual(d.track(np.array([[1, 2], [3, 4]])).shape, (3, 2, 2))
            self.assertEqual(d.track([1, 1], epochs=100)["n"].tolist(), [[101, 101]])
            self.assertEqual(d.track([1], epochs=(50, 100)).shape, (1, 1))
            self.assertEqual(d.track([1], epochs=(1, 2)).shape, (0, 1))
            self.assertEqual(d.track([2**64 - 1, 1], epochs=0)["n"].tolist(), [[None, 1]])
            self.assertEqual(d.track(range(1, 4), epochs=(None, 0))["n"].tolist(), [[1, 2, 3]])

    def test_bad_arguments(self):
        with deltafs.open("particles") as d:
            for ids in (-1, [1, -1], np.array([-1]), 2**64):
                with self.assertRaisesRegex(ValueError, "not from 0 to"):
                    d.track(ids)
            for ids in ([1.5], np.array([1.0]), ["1"], None):
                with self.assertRaises(TypeError):
                    d.track(ids)
            with self.assertRaises(ValueError):
                d.track([1], epochs=(1, 2, 3))
            with self.assertRaises(ValueError):
                d.records(epochs=-1)
            with self.assertRaisesRegex(ValueError, "not both"):
                d.records([1], partition=0)

    def test_equal_to_the_commands(self):
        with deltafs.open("particles") as d:
            for rows, words in (
                (d.records(), ["scan"]),
                (d.records([3, 1]), ["get", "3", "1"]),
                (d.records([3, 4], epochs=(100, 200)), ["get", "3", "4", "--epochs", "100:200"]),
                (d.records(epochs=(0, 100)), ["scan", "--epochs", "0:100"]),
            ):
                lines = run(COMMAND, words[0], "particles", *words[1:], "--format", "csv").splitlines()
                self.assertEqual(lines[0].split(","), list(rows.dtype.names))
                kinds = (int, int, float, float, int, float)
                printed = [tuple(kind(text) for kind, text in zip(kinds, row)) for row in csv.reader(lines[1:])]
                rows = np.sort(rows, order=("key", "epoch")) if words[0] == "scan" else rows
                printed = sorted(printed) if words[0] == "scan" else printed
                self.assertEqual(printed, rows.tolist())

    def test_partitions(self):
        with deltafs.open("particles") as d:
            parts = np.concatenate([d.epoch(100, partition=p) for p in range(d.partitions)])
            self.assertEqual(np.sort(parts, order="key").tolist(), np.sort(d.epoch(100), order="key").tolist())
            self.assertEqual(len(parts), 4)
            stored = [d.records(epochs=100, partition=p, fields="x,y,n") for p in range(d.partitions)]
            self.assertEqual(np.concatenate(stored).tolist(), d.records(epochs=100, fields=["x", "y", "n"]).tolist())

    def test_range_of_keys(self):
        with deltafs.open("particles") as d:
            rows = np.sort(d.records(), order=("epoch", "key"))
            for first, last in ((None, None), (2, 3), (3, None), (None, 1), (3, 2), (2**64 - 1, None)):
                low, high = first or 0, 2**64 - 1 if last is None else last
                wanted = [row for row in rows.tolist() if low <= row[0] <= high]
                self.assertEqual(d.scan_range(first, last).tolist(), wanted)
                wanted = [row for row in wanted if row[1] == 100]
                self.assertEqual(d.scan_range(first, last, epochs=100).tolist(), wanted)
            self.assertEqual(d.scan_range(2, 3, fields="n")["n"].tolist(), rows["n"][np.isin(rows["key"], (2, 3))].tolist())
            with self.assertRaises(ValueError):
                d.scan_range(-1, 2)

    def test_range_of_many_keys(self):
        put("many_keys", [(1, key, struct.pack("<d", key)) for key in range(70000)], "schema=a:f8")
        put("sizes", [(1, key, b"x" * key) for key in range(9)])
        put("texts", [(1, key.hex(), b"1") for key in (b"b\0", b"c", b"a", b"b")], "keys=bytes")
        with deltafs.open("many_keys") as d:
            self.assertEqual(d.scan_range(10, None)["a"].tolist(), list(range(10, 70000)))
        with deltafs.open("sizes") as d:
            self.assertEqual(d.scan_range(2, 5).tolist(), [(key, 1, b"x" * key) for key in range(2, 6)])
        with deltafs.open("texts") as d:
            self.assertEqual(d.scan_range("a", b"b\0")["key"].tolist(), [b"a", b"b", b"b\0"])
            self.assertEqual(d.scan_range(last="b")["key"].tolist(), [b"a", b"b"])
            with self.assertRaises(deltafs.InvalidError):
                d.scan_range("", "b")
            with self.assertRaises(TypeError):
                d.scan_range(0, 9)

    def test_fields(self):
        with deltafs.open("particles") as d:
            r = np.hypot(*(d.track([3, 1])[name] for name in "xy"))
            self.assertEqual(d.track([3, 1], fields="r").dtype.names, ("r",))
            self.assertEqual(d.track([3, 1], fields=["r"])["r"].tolist(), r.tolist())
            self.assertEqual(d.epoch(100, fields="dt,n")[["dt", "n"]].tolist(), [(0.5, 100 + key) for key in (1, 2, 3, 4)])
            self.assertEqual(d.records([4], fields="time").tolist(), [(4, 0, 0.0), (4, 100, 50.0)])
            for call in (d.track, d.records):
                with self.assertRaisesRegex(deltafs.InvalidError, "fields: offset 2: .*'nothing'"):
                    call([1], fields="x,nothing")
            with self.assertRaisesRegex(deltafs.InvalidError, "fields: offset 0"):
                d.epoch(0, fields="nothing")

    def test_attributes(self):
        shutil.copytree("particles", "facts")
        run(COMMAND, "attr", "facts", "grid=1,2,3")
        run(COMMAND, "attr", "facts", 'code="minipic"')
        run(COMMAND, "attr", "facts", "x=", "--unit", "0.5 m")
        with deltafs.open("facts") as d:
            self.assertEqual(d.attributes.keys(), {"dt", "time", "r", "grid", "code"})
            self.assertEqual((d.attributes["time"], d.attributes["code"]), (100, "minipic"))
            self.assertEqual(d.attributes["grid"].tolist(), [1, 2, 3])
            self.assertEqual([d.attribute("time", label).value for label in LABELS], [0, 50, 100])
            x = d.attribute("x")
            self.assertEqual((x.value, x.unit_si, x.unit_dimension), (None, 0.5, (1, 0, 0, 0, 0, 0, 0)))
            self.assertTrue(d.attribute("r").is_expression)
            with self.assertRaises(deltafs.NotFoundError):
                d.attribute("nothing")

    def test_computed_from_keys(self):
        shutil.copytree("particles", "keyed")
        run(COMMAND, "attr", "keyed", "k==key * 2 + epoch")
        with deltafs.open("keyed") as d:
            for rows in (d.records(), d.records(fields="k"), d.records([1, 2, 3]), d.select(fields="k"), d.epoch(100)):
                epochs = rows["epoch"] if "epoch" in rows.dtype.names else 100
                self.assertEqual(rows["k"].tolist(), (rows["key"] * np.uint64(2) + epochs).tolist())
            tracks = d.track([1, 2])["k"]
            self.assertEqual(tracks.tolist(), [[2 + label, 4 + label] for label in LABELS])

    def test_missing(self):
        shutil.copytree("particles", "lacking")
        run(COMMAND, "attr", "lacking", "late==x * 2", "--from", "100")
        with deltafs.open("lacking") as d:
            late = d.track([1, 2])["late"]
            self.assertFalse(late.mask.any())
            self.assertTrue(np.isnan(late[0]).all())
            self.assertTrue((late[1:] == 2 * d.track([1, 2])["x"][1:]).all())
            for rows in (d.records(), d.select()):
                self.assertEqual(np.isnan(rows["late"]).tolist(), (rows["epoch"] < 100).tolist())
            with self.assertRaisesRegex(deltafs.InvalidError, "epoch 0: where: offset 0: the attribute 'late' is not set"):
                d.select("late > 0")

    def test_select(self):
        with deltafs.open("particles") as d:
            rows = d.records()
            rows = rows[np.lexsort((rows["key"], rows["epoch"]))]
            self.assertEqual(d.select().tolist(), rows.tolist())
            self.assertEqual(d.select("x*2 > 5 and epoch < 200").tolist(), rows[(rows["x"] > 2.5) & (rows["epoch"] < 200)].tolist())
            self.assertEqual(d.select("x > 100").tolist(), [])
            self.assertEqual(d.select(epoch=200, keys=[4, 1, 2], not_keys=2)["key"].tolist(), [1])
            self.assertEqual(d.select(epochs=(None, 0), keys=[], fields="r").tolist(), [])
            self.assertEqual(d.select(epoch=0, keys=[1, 2, 3], and_keys=[3, 2, 9])["key"].tolist(), [2, 3])
            self.assertEqual(d.select(top=3, by="-n")["n"].tolist(), [1, 2, 3])
            self.assertEqual(d.select("r > x", top=1, by="r", fields=["r"]).dtype.names, ("key", "epoch", "r"))
            self.assertEqual(d.select("x > 2", fields=()).tolist(), rows[rows["x"] > 2][["key", "epoch"]].tolist())
            self.assertEqual(d.records(epochs=0, fields="").dtype.names, ("key", "epoch"))
            for arguments, message in (
                ({"where": "x > nothing"}, "where: offset 4: .*'nothing'"),
                ({"top": 3}, "top needs by, the value to order by"),
            ):
                with self.assertRaisesRegex(deltafs.InvalidError, message):
                    d.select(**arguments)
            for epoch in ((0, 100), [0, 100]):
                with self.assertRaisesRegex(TypeError, "epochs="):
                    d.select(epoch=epoch)
            for arguments in ({"epoch": 1, "epochs": 1}, {"top": 0, "by": "x"}, {"epoch": -1}):
                with self.assertRaises(ValueError):
                    d.select(**arguments)
        put("bytes", [(5, b"a\0".hex(), b"1"), (5, b"b".hex(), b"567")], "keys=bytes")
        with deltafs.open("bytes") as d:
            self.assertEqual(d.select("epoch > 1", not_keys="b").tolist(), [(b"a\0", 5, b"1")])

    def test_select_chunks(self):
        rows = [(1, key, struct.pack("<d", key)) for key in range(20000)]
        put("many", rows, "schema=a:f8", "codec=none")
        with deltafs.open("many") as d:
            with d.select_chunks("a >= 100") as chunks:
                first = next(chunks)
                self.assertLess(len(first), 10000)
                with self.assertRaisesRegex(ValueError, "a selection is open"):
                    d.refresh()
                rest = [first, *chunks]
            self.assertEqual(np.concatenate(rest)["a"].tolist(), list(range(100, 20000)))
            self.assertEqual(list(chunks), [])
            d.refresh()
            open_ = d.select_chunks()
            child = multiprocessing.get_context("fork").Process(target=open_.close)
            child.start()
            child.join(60)
            self.assertEqual(child.exitcode, 0)
            next(open_)
        for call in (lambda: next(open_), lambda: d.select()):
            with self.assertRaisesRegex(ValueError, "is closed"):
                call()
        (log,) = data_logs("many")
        damage(log, os.path.getsize(log) // 2)
        with deltafs.open("many") as d:
            with self.assertRaises(deltafs.DamagedError) as caught:
                d.select(fields="a")
            self.assertTrue(10000 < len(caught.exception.partial) < 20000)

    def test_refresh(self):
        shutil.copytree("particles", "growing")
        lib, writer = deltafs._lib, ctypes.c_void_p()
        with deltafs.open("growing") as d:
            self.assertEqual(d.track(7).mask["x"].tolist(), [True] * 3)
            _library.check(lib.deltafs_reopen(b"growing", None, ctypes.byref(writer)))
            raw = struct.pack("<fdq", *value(7, 300))
            _library.check(lib.deltafs_append(writer, ctypes.c_uint64(7), raw, ctypes.c_size_t(len(raw))))
            _library.check(lib.deltafs_epoch_end(writer, ctypes.c_uint64(300)))
            _library.check(lib.deltafs_close(writer))
            self.assertEqual(d.labels.tolist(), LABELS)
            d.refresh()
            self.assertEqual(d.labels.tolist(), LABELS + [300])
            self.assertEqual(d.track(7)["n"].tolist(), [None, None, None, 307])

    def test_closed(self):
        d = deltafs.open("particles")
        d.close()
        d.close()
        self.assertTrue(d.is_closed)
        with self.assertRaisesRegex(ValueError, "is closed"):
            d.track([1])
        with self.assertRaisesRegex(ValueError, "is closed"):
            d.__enter__()

    def test_other_processes_and_threads(self):
        with deltafs.open("particles") as d:
            with pickle.loads(pickle.dumps(d)) as again:
                self.assertEqual(again.track([1]).tolist(), d.track([1]).tolist())
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(d.track([1, 2]).tolist())) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(answers, [d.track([1, 2]).tolist()] * 8)
            child = multiprocessing.get_context("fork").Process(target=self.child, args=(d,))
            child.start()
            child.join(60)
            self.assertEqual(child.exitcode, 0)
            self.assertEqual(d.track(1).shape, (3,))

    def child(self, d):
        with self.assertRaisesRegex(ValueError, "another process"):
            d.track(1)
        d.close()

    def test_repeated(self):
        put("repeated", [(5, 1, b"ab"), (5, 1, b"cd"), (5, 2, b"ef")], "schema=a:u1,b:u1")
        with deltafs.open("repeated") as d:
            with self.assertRaisesRegex(ValueError, "key 1 has several records in epoch 5"):
                d.track([2, 1])
            self.assertEqual(d.track([2]).tolist(), [[(101, 102)]])
            self.assertEqual(d.records([1]).tolist(), [(1, 5, 97, 98), (1, 5, 99, 100)])

    def test_without_schema(self):
        put("fixed", [(5, 1, b"ab\0"), (6, 1, b"cde")], "value_size=3")
        with deltafs.open("fixed") as d:
            self.assertEqual(d.dtype, np.dtype([("value", "V3")]))
            self.assertEqual([v.tobytes() for v in d.records([1])["value"]], [b"ab\0", b"cde"])
        put("any", [(5, 1, b"ab\0"), (5, 2, b""), (6, 1, b"c" * 70000)])
        with deltafs.open("any") as d:
            self.assertEqual(d.info.value_size, -1)
            self.assertEqual(sorted(d.epoch(5).tolist()), [(1, b"ab\0"), (2, b"")])
            self.assertEqual(d.track([1, 2])["value"].tolist(), [[b"ab\0", b""], [b"c" * 70000, None]])
        put("empty", [(5, 1, b""), (5, 2, b"")], "value_size=0")
        with deltafs.open("empty") as d:
            self.assertEqual(sorted(d.epoch(5).tolist()), [(1, b""), (2, b"")])

    def test_error_bounds(self):
        put("bounded", [(5, 1, struct.pack("<fHd", 0.7, 2, 7.0))], "schema=x:f4~1e-3,n:u2,y:f8~2")
        with deltafs.open("bounded") as d:
            self.assertEqual(d.dtype, np.dtype([("x", "<f4"), ("n", "<u2"), ("y", "<f8")]))
            self.assertEqual(d.track(1).tolist(), [(0.69921875, 2, 8.0)])

    def test_keys_of_bytes(self):
        put("named", [(5, b"a\0".hex(), b"1234"), (5, b"b".hex(), b"5678")], "keys=bytes", "schema=epoch:S4")
        with deltafs.open("named") as d:
            self.assertEqual(d.dtype.names, ("value.epoch",))
            self.assertEqual(sorted(d.epoch(5).tolist()), [(b"a\0", b"1234"), (b"b", b"5678")])
            self.assertEqual(d.records([b"a\0", "b"])["key"].tolist(), [b"a\0", b"b"])
            self.assertEqual(d.track(b"a\0")["value.epoch"].tolist(), [b"1234"])
            self.assertEqual(d.track(["none"]).mask.tolist(), [[(True,)]])
            with self.assertRaises(deltafs.InvalidError):
                d.track([b""])
            with self.assertRaises(TypeError):
                d.track([5])

    def test_no_epochs(self):
        put("new", [])
        with deltafs.open("new") as d:
            self.assertEqual((d.labels.tolist(), d.track([1]).shape, len(d.records())), ([], (0, 1), 0))

    def test_damage(self):
        rows = [(label, key, struct.pack("<dd", key, label)) for label in (1, 2) for key in range(1000)]
        put("damaged", rows, "schema=a:f8,b:f8", "codec=none")
        with deltafs.open("damaged") as d:
            whole = d.track(np.arange(1000))
        (log,) = data_logs("damaged")
        damage(log, os.path.getsize(log) * 3 // 4)  # in epoch 2
        with deltafs.open("damaged") as d:
            with self.assertRaisesRegex(deltafs.DamagedError, "p00000000.data: damaged at offset") as caught:
                d.track(np.arange(1000))
            self.assertEqual(caught.exception.missing, (2,))
            partial = caught.exception.partial
            self.assertEqual(partial[0].tolist(), whole[0].tolist())
            self.assertFalse(partial.mask["a"][0].any())
            absent = partial.mask["a"][1]
            self.assertTrue(0 < np.count_nonzero(absent) < 1000)
            self.assertEqual(partial[1][~absent].tolist(), whole[1][~absent].tolist())
            with self.assertRaises(deltafs.DamagedError) as caught:
                d.epoch(2)
            self.assertEqual(len(caught.exception.partial), 1000 - np.count_nonzero(absent))
            self.assertEqual(len(d.epoch(1)), 1000)


class Conversions(unittest.TestCase):
    def need(self, name):
        try:
            return importlib.import_module(name)
        except ImportError:
            return self.skipTest(f"{name} is missing")

    def test_pandas(self):
        self.need("pandas")
        with deltafs.open("particles") as d:
            frame = d.to_pandas([4, 1])
            self.assertEqual(list(frame.columns), ["key", "epoch", "x", "y", "n", "r"])
            self.assertEqual(list(frame.itertuples(index=False, name=None)), d.records([4, 1]).tolist())
            self.assertEqual(len(d.to_pandas(epochs=200)), 3)
            self.assertEqual(frame["n"].dtype, np.int64)
        put("three", [(5, 1, b"ab\0"), (6, 1, b"cde")], "value_size=3")
        with deltafs.open("three") as d:
            self.assertEqual(d.to_pandas([1])["value"].tolist(), [b"ab\0", b"cde"])

    def test_xarray(self):
        self.need("xarray")
        with deltafs.open("particles") as d:
            data = d.to_xarray([4, 1], epochs=(100, None))
            self.assertEqual(dict(data.sizes), {"epoch": 2, "id": 2})
            self.assertEqual(float(data["x"].sel(epoch=200, id=1)), 2)
            self.assertTrue(np.isnan(data["x"].sel(epoch=200, id=4)))
            self.assertEqual(data["present"].values.tolist(), [[True, True], [False, True]])
            self.assertEqual(data["n"].values.tolist(), [[104, 101], [0, 201]])

    def test_arrow(self):
        pyarrow = self.need("pyarrow")
        put("types", [(1, 2, b"ab\0\0" + bytes([1, 0, 0xFF]))], "schema=s:S4,v:V2,i:i1")
        for path in ("particles", "types"):
            with deltafs.open(path) as d:
                table = pyarrow.table(d.to_arrow())
                expected = [dict(zip(table.column_names, row)) for row in d.records().tolist()]
                self.assertEqual(table.to_pylist(), expected)
        kinds = [str(kind) for kind in table.schema.types]
        self.assertEqual(kinds, ["uint64", "uint64", "large_binary", "fixed_size_binary[2]", "int8"])
        table = pyarrow.table(deltafs.to_arrow(np.array([(1, 2.5), (3, 4)], [("id", ">i8"), ("x", ">f4")])))
        self.assertEqual(table.to_pylist(), [{"id": 1, "x": 2.5}, {"id": 3, "x": 4.0}])

    def test_arrow_elsewhere(self):
        polars, duckdb = self.need("polars"), self.need("duckdb")
        with deltafs.open("particles") as d:
            rows = d.select("x > 1")
            particles = deltafs.to_arrow(rows)  # DuckDB finds it by its name
            self.assertEqual(polars.DataFrame(particles).rows(), rows.tolist())
            (found,) = duckdb.sql("select count(*), sum(n) from particles").fetchall()
            self.assertEqual(found, (len(rows), rows["n"].sum()))

    def test_arrow_is_released(self):
        pyarrow = self.need("pyarrow")
        kept = len(_arrow._kept)
        table = pyarrow.table(deltafs.to_arrow(np.zeros(100, [("x", "f8"), ("s", "S3")])))
        self.assertGreater(len(_arrow._kept), kept)
        del table
        self.assertEqual(len(_arrow._kept), kept)

    def test_dask(self):
        self.need("dask.dataframe")
        with deltafs.open("particles") as d:
            frame = d.to_dask()
            self.assertEqual(frame.npartitions, 9)
            self.assertEqual(float(frame["x"].sum().compute()), float(d.records()["x"].sum()))
            self.assertEqual(len(frame.compute()), 11)
            self.assertEqual(list(d.to_dask(fields=["r"]).compute().columns), ["key", "epoch", "r"])
            self.assertEqual(d.to_dask(epochs=200)["key"].compute().sum(), 6)
            self.assertEqual(len(d.to_dask(epochs=(1, 2)).compute()), 0)


class LogicalFiles(unittest.TestCase):
    def test_file_object(self):
        with deltafs.open_file("out") as f:
            self.assertTrue(f.readable() and f.seekable() and not f.writable())
            self.assertEqual((f.read(5), f.tell()), (b"hello", 5))
            self.assertEqual((f.seek(-6, os.SEEK_END), f.read()), (6, b"world\n"))
            self.assertEqual((f.seek(2, os.SEEK_CUR), f.read(), f.read(3)), (14, b"", b""))
            f.seek(0)
            array = np.zeros(4, np.uint8)
            self.assertEqual((f.readinto(array), array.tobytes()), (4, b"hell"))
            self.assertEqual(f.readinto(bytearray()), 0)
            with self.assertRaises(ValueError):
                f.seek(-1)
            with self.assertRaises(ValueError):
                f.seek(0, 5)
            f.seek(0)
            self.assertEqual(list(io.TextIOWrapper(io.BufferedReader(f))), ["hello world\n"])
        self.assertTrue(f.closed)
        for call in (f.read, f.tell, f.readable, lambda: f.seek(0), lambda: f.size):
            with self.assertRaises(ValueError):
                call()

    def test_info(self):
        with deltafs.open_file("out") as f:
            self.assertEqual((f.info.size, f.size, f.info.sessions, f.info.is_closed), (12, 12, 1, True))
            f.refresh()
            self.assertIn("out", repr(f))

    def test_large(self):
        content = np.random.default_rng(1).bytes(3 << 20)
        with open("large", "wb") as f:
            f.write(content)
        run(COMMAND, "cp", "large", "deltafs:large.logical")
        with deltafs.open_file("large.logical") as f:
            self.assertEqual(f.read(), content)
            f.seek(1 << 20)
            self.assertEqual(io.BufferedReader(f).read(100), content[1 << 20 :][:100])

    def test_h5py(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("h5py is missing")
        with h5py.File("plain.h5", "w") as h:
            h["x"] = np.arange(1000)
        run(COMMAND, "cp", "plain.h5", "deltafs:logical.h5")
        with h5py.File(deltafs.open_file("logical.h5"), "r") as h:
            self.assertEqual(h["x"][:].tolist(), list(range(1000)))


class FileIndexes(unittest.TestCase):
    def test_rows(self):
        with deltafs.open_index("dumps.keys") as index:
            row = index.get(9, epochs=20)[0]
            self.assertEqual((row.key, row.label, row.row, row.table), (9, 20, 2, ""))
            self.assertEqual((os.path.basename(row.path), row.value["x"]), ("dump.20", 2))
            self.assertEqual(index.get(6), [])
            self.assertEqual(len(pickle.loads(pickle.dumps(index)).tables), 2)
            self.assertFalse(index.tables[0].is_logical)
            self.assertIn("dumps.keys", repr(index))

    def test_is_no_directory(self):
        with self.assertRaisesRegex(deltafs.ModeError, "dumps.keys: .*open_index"):
            deltafs.open("dumps.keys")

    def test_changed_file(self):
        for label in (1, 2):
            shutil.copy("dump.10", f"other.{label}")
        index_files("other.keys", ["other.1", "other.2"], {"schema": "id:u8,x:f4", "key": "id"})
        with open("other.1", "ab") as f:
            f.write(b"123456789012")
        with deltafs.open_index("other.keys") as index:
            with self.assertRaisesRegex(deltafs.ChangedError, "other.1") as caught:
                index.get(7)
            self.assertEqual(caught.exception.missing, (1,))
            self.assertEqual([row.label for row in caught.exception.partial], [2])


@unittest.skipUnless(os.path.isdir(os.environ.get("REAL", "")), "no dumps of a real run")
@unittest.skipUnless(os.environ.get("DELTAFS_MPI_COMMAND"), "built without MPI")
class RealRun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        real = os.environ["REAL"]
        files = sorted(glob.glob(f"{real}/eparticle.*"))
        run(os.environ["DELTAFS_MPI_COMMAND"], "import", "--format", "vpic", "-o", "real", "--partitions", "3", *files)
        with open(f"{real}/trajectories.csv") as f:
            cls.lines = list(csv.DictReader(f))

    def test_trajectories(self):
        ids = sorted({int(line["id"]) for line in self.lines})
        with deltafs.open("real") as d:
            names = [name for name in d.dtype.names if name not in "xyz"]
            t = d.track(ids, fields=names)
            self.assertEqual((t.shape, t.mask["i"].any()), ((11, 50), False))
            for line in self.lines:
                got = t[d.labels.tolist().index(int(line["step"])), ids.index(int(line["id"]))]
                self.assertEqual(tuple(got), tuple(float(line[name]) for name in names))
            self.assertTrue(d.track([20480, 81920, 2**63])["i"].mask.all())

    def test_five_lines(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is missing")
        matplotlib.use("Agg")
        with open(os.environ["MANUAL"]) as f:
            page = f.read()
        (lines,) = re.findall(r"^(import deltafs, .*?savefig.*?)\n", page, re.M | re.S)
        self.assertEqual(lines.count("\n"), 4)
        names = {}
        exec(lines.replace('"particles"', '"real"'), names)
        self.assertGreater(os.path.getsize("tracks.png"), 10000)
        with deltafs.open("real") as d:
            rows = d.epoch(480, fields="ux,uy,uz")
            u = [rows[name].astype(float) for name in ("ux", "uy", "uz")]
            order = np.lexsort((rows["key"], -(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])))
            self.assertEqual(names["top"]["key"].tolist(), rows["key"][order[:10]].tolist())
        self.assertEqual((names["t"].shape, names["t"]["x"].mask.any()), ((11, 10), False))

    def test_epochs(self):
        with deltafs.open("real") as d:
            for label in d.labels[-2:]:
                names = [name for name in d.dtype.names if name not in "xyz"]
                rows = d.epoch(label, fields=names)
                expected = []
                for path in glob.glob(f"{os.environ['REAL']}/eparticle.{label}.*"):
                    with open(path, "rb") as f:
                        raw = f.read()
                    (n,) = struct.unpack_from("<i", raw, 111)
                    dump = np.zeros(n, rows.dtype)
                    dump["key"] = np.frombuffer(raw, "<u8", n, 115 + 32 * n + 12)
                    particle = np.dtype([(name, d.dtype[name]) for name in names if name != "rank"])
                    values = np.frombuffer(raw, particle, n, 115)
                    for name in particle.names:
                        dump[name] = values[name]
                    dump["rank"] = int(path.rsplit(".", 1)[1])
                    expected.append(dump)
                expected = np.concatenate(expected)
                self.assertEqual(np.sort(rows, order="key").tobytes(), np.sort(expected, order="key").tobytes())
                track = d.track(rows["key"], epochs=label, fields=names)[0]  # more keys than are looked up at once
                for name in names:
                    self.assertEqual(track.data[name].tobytes(), rows[name].tobytes())


if __name__ == "__main__":
    unittest.main()
