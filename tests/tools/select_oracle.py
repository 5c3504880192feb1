"""deltafs select against Python, which has the same operators. Random records and expressions.

select_oracle.py DELTAFS PUT_RECORDS FOLDER SEED
"""

import json
import math
import random
import struct
import subprocess
import sys

from oracle import text_float

VALUE = struct.Struct("<fdiQ")
SCHEMA = "x:f4,y:f8,i:i4,key:u8"  # a field that is called key has another name in expressions


def without_nan(function):
    def of(*values):
        return function([v for v in values if v == v] or values[:1])

    return of


FUNCTIONS = {"sqrt": math.sqrt, "atan2": math.atan2, "abs": abs, "min": without_nan(min), "max": without_nan(max)}
ARRAY = [0.5, -3.0, 7.25, 1e10]
CONDITIONS = [
    "x > 0",
    "x*x + y*y < 100 and not i % 3 == 0",
    "-5 <= i // 2 <= 5 or x == 1.5",
    "key % 7 == 3",
    "value.key > 9223372036854775807",
    "epoch != 7 and x != x",
    "sqrt(abs(y)) >= 5 and atan2(y, x) > 0.5",
    "max(x, y, i) > 20 and min(x, y) < 0",
    "x <= 0 and y <= 0",
    "cube > 100",
    "table[i % 4] + x > 5",
    "key == 18446744073709551615",
    "x > 1e30",
]
VALUES = ["x", "-y", "x*y - i", "i % 5", "abs(i) // 3", "cube", "epoch", "table[i % 4]", "value.key % 1000"]
CUBE = "i ** 3 - epoch"


def make(rng):
    """[(label, key, value)] in the order of appending."""
    special = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan")]

    def real():
        return rng.choice(special) if rng.random() < 0.1 else rng.randint(-400, 400) / 8

    keys = [rng.getrandbits(64) for _ in range(120)] + list(range(40)) + [2**64 - 1]
    return [
        (label, rng.choice(keys), VALUE.pack(real(), real(), rng.randint(-50, 50), rng.getrandbits(64)))
        for label in (0, 7, 480)
        for _ in range(300)
    ]


def names(label, key, value):
    x, y, i, field = VALUE.unpack(value)
    found = dict(FUNCTIONS, x=x, y=y, i=i, key=key, epoch=label, table=ARRAY, value_key=field)
    found["cube"] = float(i**3 - label)
    found["factor"] = 2.0 if label < 7 else 3.0
    return found


def evaluate(text, record):
    try:
        return eval(text.replace("value.key", "value_key"), {"__builtins__": {}}, names(*record))
    except ValueError:
        return float("nan")


def field_text(name, record):
    v = names(*record)["value_key" if name == "value.key" else name]
    return str(v) if isinstance(v, int) else text_float(v)


ALL = ["x", "y", "i", "value.key", "cube"]


def csv(records, fields):
    lines = ["key,epoch," + ",".join(fields)]
    lines += ["%d,%d,%s" % (r[1], r[0], ",".join(field_text(f, r) for f in fields)) for r in records]
    return "".join(line + "\n" for line in lines)


def die(text):
    sys.exit("select_oracle: " + text)


def run(expected_code, *args):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode != expected_code:
        die("exit code %d: %r: %s" % (p.returncode, args, p.stderr.decode()))
    return p.stdout.decode()


def by_key(record):
    return record[0], record[1]


def descending(text):
    def order(record):
        v = evaluate(text, record)
        return (1, 0, record[1], record[0]) if v != v else (0, -v, record[1], record[0])

    return order


def check(deltafs, folder, records, fields, *options):
    got = run(0 if records else 1, deltafs, "select", folder, "--format", "csv", *options)
    want = csv(records, fields)
    if got != want:
        for a, b in zip(got.splitlines(), want.splitlines()):
            if a != b:
                die("%r: %s instead of %s" % (options, a, b))
        die("%r: %d lines instead of %d" % (options, got.count("\n"), want.count("\n")))


def check_conditions(deltafs, folder, records, rng):
    for where in CONDITIONS:
        chosen = [r for r in records if evaluate(where, r)]
        check(deltafs, folder, chosen, ALL, "--where", where)
        fields = rng.sample(ALL + ["factor"], rng.randint(1, 4))
        check(deltafs, folder, chosen, fields, "--where", where, "--fields", ",".join(fields))
        later = [r for r in chosen if r[0] >= 7]
        check(deltafs, folder, later, ALL, "--where=" + where, "--epochs", "7:")
        keys = run(0 if chosen else 1, deltafs, "select", folder, "--where", where, "--format", "keys")
        if keys != "".join("%d\n" % key for key in sorted({r[1] for r in chosen})):
            die("keys of " + where)
        for by in VALUES:
            top = rng.choice([1, 3, 50, 2000])
            best = sorted(chosen, key=descending(by))[:top]
            check(deltafs, folder, best, ALL, "--where", where, "--by", by, "--top", str(top))


def check_sets(deltafs, folder, records, work, rng):
    every = sorted({r[1] for r in records})
    for count in (0, 1, 20, len(every)):
        sets = []
        for name in ("keys", "and", "not"):
            some = rng.sample(every, count) + [123456789]
            sets.append(set(some))
            with open("%s/%s" % (work, name), "w") as f:
                f.write(" ".join(map(str, some)) if count > 1 else "".join("0x%x\n" % key for key in some))
        files = ["--%s=%s/%s" % (name, work, name) for name in ("keys", "and", "not")]
        for use in range(1, 8):
            chosen = [
                r
                for r in records
                if (not use & 1 or r[1] in sets[0])
                and (not use & 2 or r[1] in sets[1])
                and (not use & 4 or r[1] not in sets[2])
            ]
            given = [files[i] for i in range(3) if use >> i & 1]
            check(deltafs, folder, chosen, ALL, *given)
            positive = [r for r in chosen if evaluate("x > 0", r)]
            check(deltafs, folder, positive, ALL, "--where", "x > 0", *given)


def main(deltafs, put_records, work, seed):
    rng = random.Random(int(seed))
    records = make(rng)
    text = "".join("%d %d %s\n" % (label, key, value.hex()) for label, key, value in records)
    folder = work + "/random"
    options = ["schema=" + SCHEMA, "partitions=%d" % rng.randint(1, 6), "block=%d" % rng.choice([256, 4096])]
    subprocess.run([put_records, folder] + options, input=text.encode(), check=True)
    run(0, deltafs, "attr", folder, "cube==" + CUBE)
    run(0, deltafs, "attr", folder, "table=" + ",".join(map(repr, ARRAY)))
    run(0, deltafs, "attr", folder, "factor=2.0")
    run(0, deltafs, "attr", folder, "factor=3.0", "--from", "7")
    records.sort(key=by_key)  # stable: equal keys stay in the order of appending
    check(deltafs, folder, records, ALL)
    check_conditions(deltafs, folder, records, rng)
    check_sets(deltafs, folder, records, work, rng)
    rows = json.loads(run(0, deltafs, "select", folder, "--where", "x > 10", "--fields", "i,cube", "--format", "json"))
    want = [r for r in records if evaluate("x > 10", r)]
    if [(r["epoch"], r["key"], r["i"]) for r in rows] != [(r[0], r[1], VALUE.unpack(r[2])[2]) for r in want]:
        die("json")


if __name__ == "__main__":
    main(*sys.argv[1:])
