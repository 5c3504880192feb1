"""Asks `deltafs ns` for all that a namespace has.

    get_entries.py DELTAFS NAMESPACE ENTRIES

ENTRIES is what decode_namespace.py prints. Ends with an error if the command says anything else; times are compared in
whole seconds. Prints the number of entries."""

import datetime
import hashlib
import json
import os
import subprocess
import sys


def ask(*arguments):
    done = subprocess.run([deltafs, "ns", *arguments], stdout=subprocess.PIPE, env=dict(os.environ, TZ="UTC"))
    if done.returncode != 0:
        sys.exit("deltafs ns %s: exit code %d" % (" ".join(arguments), done.returncode))
    return done.stdout


def line(e):
    path = e["path"][len(namespace) + 1 :]
    time = int(datetime.datetime.strptime(e["modified"], "%Y-%m-%dT%H:%M:%S%z").timestamp())
    what = []
    if e["kind"] == "file":
        what = [hashlib.sha256(ask("cat", e["path"])).hexdigest()]
    elif e["kind"] == "link":
        what = [e["target"]]
    return " ".join([path, e["kind"], e["mode"], *map(str, (e["uid"], e["gid"], time, e["size"])), *what])


def in_seconds(entry, fields_before):
    """The same, with the time in whole seconds; a path may have blanks."""
    words = entry.rstrip("\n").split(" ")
    at = next(i for i, w in enumerate(words) if w in ("file", "folder", "link")) + fields_before
    words[at] = str(int(words[at]) // 10**9)
    return " ".join(words)


deltafs, namespace, entries = sys.argv[1:]
with open(entries) as f:
    want = sorted(in_seconds(entry, 4) for entry in f)
root = json.loads(ask("stat", "--json", namespace + ":/"))
root = root[0] if isinstance(root, list) else root
got = sorted(line(e) for e in [root] + json.loads(ask("ls", "-aR", "--json", namespace + ":/")))
if got != want:
    sys.exit("got %s\ninstead of %s" % ("\n".join(got), "\n".join(want)))
print(len(got))
