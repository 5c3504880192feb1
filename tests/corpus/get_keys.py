"""get_keys.py DELTAFS DIR SCAN: whether the file SCAN, by `deltafs scan`, has what decode.py reads; and `deltafs get` the same
of every key, and nothing of others. Prints how many records there are."""

import os
import subprocess
import sys
import tempfile
from itertools import zip_longest

import decode


def stored(out, header):
    """The lines without computed columns."""
    columns = header.count(b",") + 1
    return b"".join(b",".join(line.split(b",")[:columns]) + b"\n" for line in out.splitlines())


def get(deltafs, folder, keys):
    with tempfile.NamedTemporaryFile(delete=False) as f:
        f.writelines((key if isinstance(key, bytes) else b"%d" % key) + b"\n" for key in keys)
    try:
        run = subprocess.run([deltafs, "get", folder, "--keys", f.name, "--format", "csv"], capture_output=True)
    finally:
        os.unlink(f.name)
    return run.returncode, run.stdout, run.stderr


def main(deltafs, folder, scan):
    records = decode.read(folder)
    manifest = next(records)
    csv = decode.Csv(manifest.schema)
    of, lines = {}, [csv.header]
    for key, label, value in records:
        lines.append(csv.line(key, label, value))
        of.setdefault(key, []).append((label, lines[-1]))
    with open(scan, "rb") as f:
        for number, (got, want) in enumerate(zip_longest(f.read().split(b"\n"), lines + [b""]), 1):
            if got != want:
                sys.exit("%s: line %d of a scan: %r instead of %r" % (folder, number, got, want))
    keys = sorted(of)
    # The records of a key come by epoch; in a scan too, if a key has one partition.
    for rows in of.values():
        in_order = sorted(rows, key=lambda row: row[0])
        assert manifest.is_ranged or rows == in_order
        rows[:] = in_order
    wanted = [csv.header] + [row[1] for key in keys for row in of[key]]
    got = get(deltafs, folder, keys)
    has_computed = any(" type=expr " in line for line in manifest.lines)
    if has_computed:
        got = got[0], stored(got[1], csv.header), got[2]
    if keys and got != (0, b"\n".join(wanted) + b"\n", b""):
        sys.exit("%s: get of every key: %r %r" % (folder, got[0], got[2][:300]))
    if manifest.keys_are_bytes:
        absent = [key + b"." for key in keys if len(key) < 255 and key + b"." not in of] + [b"-"]
    else:
        absent = [k for key in keys for k in (key - 1, key + 1) if 0 <= k < 2**64 and k not in of] + [2**63 + 2**31]
    code, out, err = get(deltafs, folder, absent)
    out = stored(out, csv.header) if has_computed else out
    if (code, out, err.count(b"not found")) != (1, csv.header + b"\n", len(absent)):
        sys.exit("%s: get of absent keys: %d %r %r" % (folder, code, out[:300], err[:300]))
    print(sum(map(len, of.values())))


if __name__ == "__main__":
    main(*sys.argv[1:])
