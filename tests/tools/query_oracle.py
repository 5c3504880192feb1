"""Random questions about random directories, and about rows of random files, against plain Python: ranges of keys,
conditions and largest values, with indexes by value and without, before and after compaction, by one process and by
ranks.

query_oracle.py DELTAFS DELTAFS_MPI PUT_RECORDS FOLDER SEED MPIEXEC...
"""

import math
import random
import struct
import subprocess
import sys

from oracle import text_float
from select_oracle import FUNCTIONS

VALUE = struct.Struct("<fdiQ")
SCHEMA = "x:f4,y:f8,i:i4,k:u8"
FIELDS = ["x", "y", "i", "k"]
SPECIAL = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-42, -1e-42, 3e38, -3e38]


class Case:
    """A directory, and what is in it."""

    def __init__(self, tools, work, seed, number):
        self.deltafs, self.deltafs_mpi, self.put_records, self.mpiexec = tools
        self.rng = random.Random("%d %d" % (seed, number))
        self.name = "seed %d, case %d" % (seed, number)
        self.work = work
        self.folder = "%s/%d" % (work, number)
        self.records = []  # (label, key, value), sorted
        self.index = self.index_text = None  # its expression, and what it was made of
        self.used = 0  # questions that the index answered
        self.files = {}  # of an index of files: path -> (label, number in its epoch, records)

    def die(self, text):
        sys.exit("query_oracle: %s: %s" % (self.name, text))

    def run(self, args, codes=(0,), text=None):
        p = subprocess.run(args, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        if p.returncode not in codes:
            self.die("exit code %d: %s\n%s" % (p.returncode, " ".join(args), p.stderr.decode()))
        return p.stdout.decode(), p.stderr.decode()

    def ranks(self, most=4):
        return self.mpiexec + ["-np", str(self.rng.randint(1, most)), self.deltafs_mpi]


# ---- Data


def some_real(rng, skew):
    if skew == "special" and rng.random() < 0.5:
        return rng.choice(SPECIAL)
    if skew == "equal":
        return 2.5
    if skew == "giant":
        return 1e30 if rng.random() < 0.005 else 2.5
    if skew == "power":
        return 1 / (rng.random() ** 2 + 1e-9)
    return rng.randint(-400, 400) / 8


def make_epoch(case, label, is_bytes, count, is_unique):
    rng = case.rng
    skew = rng.choice(["none", "special", "equal", "giant", "power"])
    if is_unique:
        keys = rng.sample(range(5000), count)
    else:
        some = [rng.getrandbits(64) for _ in range(60)] + list(range(40)) + [2**64 - 1]
        keys = [rng.choice(some) for _ in range(count)]
    if is_bytes:
        keys = [("%x" % key)[: rng.randint(1, 6)].encode() for key in keys]

    def value():
        k = rng.choice([0, 7, rng.getrandbits(64)])
        return VALUE.pack(some_real(rng, skew), some_real(rng, skew), rng.randint(-9, 9), k)

    return [(label, key, value()) for key in keys]


def take(case, records):
    case.records = sorted(case.records + records, key=lambda r: r[:2])  # stable: equal keys keep their order


def put(case, is_bytes, *options):
    """Written by one process."""
    records = []
    for label in (3, 4, 9):
        records += make_epoch(case, label, is_bytes, case.rng.choice([1, 400, 600]), False)
    lines = ["%d %s %s\n" % (label, key.hex() if is_bytes else key, value.hex()) for label, key, value in records]
    case.run(
        [case.put_records, case.folder, "schema=" + SCHEMA, "keys=" + ("bytes" if is_bytes else "u64")]
        + ["partitions=%d" % case.rng.randint(1, 5), "block=%d" % case.rng.choice([256, 4096])]
        + (["partitioner=range"] if not is_bytes and case.rng.random() < 0.5 else [])
        + list(options),
        text="".join(lines).encode(),
    )
    take(case, records)


def import_epochs(case, labels, *options):
    """Written by ranks: keys of several ranks come in any order, so each comes once."""
    files = []
    for label in labels:
        records = make_epoch(case, label, False, case.rng.randint(1, 900), True)
        files.append("%s/dump.%d" % (case.work, label))
        with open(files[-1], "wb") as f:
            f.writelines(struct.pack("<Q", key) + value for _, key, value in records)
        take(case, records)
    case.run(
        case.ranks() + ["import", "-q", "--format", "raw", "--schema", "id:u8," + SCHEMA, "--key", "id"]
        + list(options) + ["-o", case.folder] + files
    )


def compact(case):
    case.run(case.ranks() + ["compact", "-q", case.folder, "-o", case.folder + ".new"])
    case.folder += ".new"


# ---- Files


def index_file(case, label, number, keys=None):
    """A file of an epoch, or other values of these keys, which no other file of the epoch has."""
    records = make_epoch(case, label, False, case.rng.randint(1, 700), True)
    keys = keys or [key * 2 + number for _, key, _ in records]
    if len(keys) > len(records):
        records = (records * len(keys))[: len(keys)]
    records = [(label, key, value) for key, (_, _, value) in zip(keys, records)]
    path = "%s/rows.%d.%d" % (case.work, label, number)
    with open(path, "wb") as f:
        f.writelines(struct.pack("<Q", key) + value for _, key, value in records)
    case.run(
        case.ranks() + ["index", "-q", "--schema", "id:u8," + SCHEMA, "--key", "id", "--label", str(label)]
        + ["-o", case.folder, path]
    )
    case.files[path] = (label, number, records)


def index_files(case, labels):
    for label in labels:
        for number in range(case.rng.randint(1, 2)):
            index_file(case, label, number)
    take_files(case)


def take_files(case):
    case.records = []
    for _, _, records in case.files.values():
        take(case, records)


def change_files(case, has_same_keys):
    """Some files get other rows, or other values in the same rows, and are indexed again."""
    for path in case.rng.sample(sorted(case.files), len(case.files) // 2 + 1):
        label, number, records = case.files[path]
        index_file(case, label, number, [key for _, key, _ in records] if has_same_keys else None)
    take_files(case)


def forget_file(case):
    path = case.rng.choice(sorted(case.files))
    case.run(case.ranks() + ["index", "-q", "--forget", "-o", case.folder, path])
    del case.files[path]
    take_files(case)


# ---- Expressions


def some_value(rng, depth=2):
    """A value that Python and DeltaFS compute alike: nothing that Python refuses."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["x", "y", "i", "x", "y", "3", "0.25", "epoch", "(k % 10)", "(i // 3)"])
    a, b = some_value(rng, depth - 1), some_value(rng, depth - 1)
    forms = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "-{0}", "abs({0})", "max({0}, {1})", "min({0}, {1})"]
    forms.append("sqrt(abs({0}))")
    return "(%s)" % rng.choice(forms).format(a, b)


def some_condition(case, value, chosen):
    """About a value, with numbers that some of the records have, or almost."""
    rng = case.rng
    found = [evaluate(value, r) for r in rng.sample(chosen, min(6, len(chosen)))]
    found = [v for v in found if math.isfinite(v)] or [0.0]
    low, high = rng.choice(found), rng.choice(found)
    if rng.random() < 0.3:
        low = math.nextafter(low, math.inf) if hasattr(math, "nextafter") else low
    op = rng.choice([">", ">=", "<", "<=", "==", "between", "not"])
    if op == "between":
        return "%r <= %s < %r" % (low, value, high)
    if op == "not":
        return "not %s < %r" % (value, low)
    return "%s %s %r" % (value, op, low)


def names(record):
    label, key, value = record
    x, y, i, k = VALUE.unpack(value)
    return dict(FUNCTIONS, x=x, y=y, i=i, k=k, key=key, epoch=label)


def evaluate(text, record):
    return eval(text, {"__builtins__": {}}, names(record))


def descending(text):
    def order(record):
        v = evaluate(text, record)
        return (1, 0, record[1], record[0]) if v != v else (0, -v, record[1], record[0])

    return order


# ---- Questions


def csv(case, records, fields):
    lines = ["key,epoch," + ",".join(fields)]
    for label, key, value in records:
        of = dict(zip(FIELDS, VALUE.unpack(value)))
        texts = [text_float(of[f]) if f in "xy" else str(of[f]) for f in fields]
        lines.append("%s,%d,%s" % (key.decode() if isinstance(key, bytes) else key, label, ",".join(texts)))
    return "".join(line + "\n" for line in lines)


def check(case, command, args, wanted, fields):
    args = command + [args[0], case.folder, "--format", "csv", "--fields", ",".join(fields)] + args[1:]
    got, said = case.run(args, (0, 1))
    want = csv(case, wanted, fields)
    case.used += "index: e" in said
    if got == want or (not wanted and got == ""):
        return
    for a, b in zip(got.splitlines(), want.splitlines()):
        if a != b:
            case.die("%s\n%s instead of %s" % (" ".join(args), a, b))
    case.die("%s\n%d lines instead of %d" % (" ".join(args), got.count("\n"), want.count("\n")))


def some_epochs(case):
    """Records of some epochs, and the option for them."""
    if case.rng.random() < 0.6:
        return case.records, []
    low, high = sorted(case.rng.choices([0, 3, 4, 5, 9, 12, 20], k=2))
    return [r for r in case.records if low <= r[0] <= high], ["--epochs", "%d:%d" % (low, high)]


def ask_range(case):
    chosen, options = some_epochs(case)
    ends = sorted(case.rng.choice(case.records)[1] for _ in range(2))
    if not isinstance(ends[0], bytes):
        ends = sorted(max(0, min(2**64 - 1, end + case.rng.randint(-1, 1))) for end in ends)
    texts = [end.decode() if isinstance(end, bytes) else str(end) for end in ends]
    if case.rng.random() < 0.2:
        end = case.rng.randrange(2)
        texts[end] = ""
        ends[end] = type(ends[end])() if end == 0 else None
    wanted = [r for r in chosen if ends[0] <= r[1] and (ends[1] is None or r[1] <= ends[1])]
    check(case, [case.deltafs], ["scan", "--key-range", ":".join(texts)] + options, wanted, case.rng.sample(FIELDS, 2))


def ask_select(case, command):
    rng = case.rng
    chosen, options = some_epochs(case)
    value = case.index if case.index and rng.random() < 0.6 else some_value(rng)
    if rng.random() < 0.8:
        where = some_condition(case, "(%s)" % value, case.records)
        if rng.random() < 0.3:
            other = some_condition(case, rng.choice(["x", "i", "(k % 10)"]), case.records)
            where += rng.choice([" and ", " or "]) + other
        chosen = [r for r in chosen if evaluate(where, r)]
        options = options + ["--where=" + where]
    if rng.random() < 0.3:
        by, top = rng.choice([value, some_value(rng)]), rng.choice([1, 5, 100, 5000])
        chosen = sorted(chosen, key=descending(by))[:top]
        options = options + ["--top", str(top), "--by=" + by]
    check(case, command, ["select", "--explain"] + options, chosen, rng.sample(FIELDS, rng.randint(1, 4)))


def ask(case):
    for _ in range(2):
        if not case.files:
            ask_range(case)
        ask_select(case, [case.deltafs])
    ask_select(case, case.ranks())


# ---- Cases


def index_by(case, value):
    """An index by this value, as the option has it; with some columns."""
    carried = "".join(" +" + field for field in case.rng.sample(FIELDS, case.rng.randint(0, 2)))
    case.index, case.index_text = value, "e:" + value + carried
    return case.index_text


def index(case):
    """An index by a random value, or the one that there is, completed."""
    text = case.index_text or index_by(case, some_value(case.rng))
    case.run(case.ranks() + ["index", "--by", text, case.folder])


def indexed_in_situ(case):
    put(case, False, "index_by=" + index_by(case, case.rng.choice(["x*x + i", "k", "min(x, y)"])))
    ask(case)
    compact(case)
    ask(case)
    index(case)
    ask(case)


def indexed_by_ranks(case):
    text = index_by(case, case.rng.choice(["y - x", "x", "max(x, y)"]))
    import_epochs(case, [3, 4], "--index_by", text, "--partitions", "3", "--partitioner", "range")
    import_epochs(case, [9], "--append")
    ask(case)
    index(case)
    ask(case)


def local(case):
    put(case, False, "layout=local")
    ask(case)
    index(case)
    ask(case)


def names_compacted(case):
    put(case, True)
    ask(case)
    compact(case)
    ask(case)


def names_local(case):
    put(case, True, "layout=local")
    ask(case)
    compact(case)
    ask(case)


def compacted_twice(case):
    import_epochs(case, [3, 4])
    compact(case)
    index(case)
    import_epochs(case, [9, 12], "--append")
    ask(case)
    index(case)
    ask(case)
    compact(case)
    ask(case)


def files(case):
    index_files(case, [3, 4, 9])
    ask(case)
    index(case)
    ask(case)
    change_files(case, True)
    ask(case)
    ask(case)
    index(case)
    change_files(case, False)
    index_files(case, [12])
    ask(case)
    index(case)
    forget_file(case)
    ask(case)
    case.run(case.ranks() + ["index", "-q", "--compact", "-o", case.folder])
    ask(case)
    index(case)
    ask(case)


def main(deltafs, deltafs_mpi, put_records, work, seed, *mpiexec):
    tools = deltafs, deltafs_mpi, put_records, list(mpiexec)
    used = 0
    cases = [indexed_in_situ, indexed_by_ranks, local, names_compacted, names_local, compacted_twice, files]
    for number, fill in enumerate(cases):
        case = Case(tools, work, int(seed), number)
        fill(case)
        used += case.used
    print("seed %s: %d questions were answered by an index" % (seed, used))
    if used == 0:
        sys.exit("query_oracle: seed %s: no index was used" % seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
