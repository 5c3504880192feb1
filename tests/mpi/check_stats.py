"""Checks a file of statistics: check_stats.py FILE RANKS NODES ROUTE. Two directories, the first with records."""
import json
import sys

STAGES = { "direct": ["net", "in"], "3hop": ["out", "net", "in"], "grid": ["out", "via", "mid", "net", "in"]}


def total(value, ranks):
    return round(value["mean"] * ranks)


def check(line, ranks, nodes, route):
    s = json.loads(line)
    assert (s["ranks"], s["nodes"], s["route"]) == (ranks, nodes, route if ranks > 1 else "none"), s
    stages = STAGES[route] if ranks > 1 else []
    if nodes == 1 and ranks > 1:
        stages = ["in"]
    assert list(s["hops"]) == stages, s["hops"]
    for value in [s["records"], s["memory_peak"], *s["hops"].get("in", {}).values()]:
        assert 0 <= value["min"] <= value["mean"] <= value["max"], value
    assert s["memory_peak"]["max"] <= s["memory_limit"]["min"], s
    assert s["memory_shuffle"]["max"] < s["memory_limit"]["min"] / 7, s
    for cause in ["ring", "credit", "send", "storage", "end"]:
        assert s["stalls"][cause]["seconds"]["min"] >= 0, s
    records = total(s["records"], ranks)
    assert records > 0 and total(s["bytes_written"], ranks) > 0, s
    moved = sum(total(hop["records"], ranks) for hop in s["hops"].values())
    if ranks == 1:
        assert moved == 0, s
        return
    assert 0 < moved <= records * len(stages), s
    # Each epoch's end is a mark in every channel.
    assert s["stalls"]["end"]["count"]["min"] >= s["epochs"], s
    for hop in s["hops"].values():
        assert total(hop["bytes"], ranks) >= 24 * total(hop["messages"], ranks), s


path, ranks, nodes, route = sys.argv[1:]
with open(path) as f:
    lines = f.readlines()
assert len(lines) == 2, lines
for text in lines:
    check(text, int(ranks), int(nodes), route)
