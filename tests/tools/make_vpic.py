"""Dumps as VPIC writes them, of particles that move between ranks, enter and leave.

make_vpic.py FOLDER [--ranks N] [--steps A,B,...] [--particles N] [--seed N] [--species N] [--name NAME]

Writes FOLDER/NAME.STEP.RANK; NAME is p. IDs are of several kinds (dense, rank and counter, large, 0 and 2^64 - 1); odd numbers of
particles; the last rank has none in the first step; some floats are not numbers.
"""

import argparse
import os
import random
import struct

NAN, INF = float("nan"), float("inf")
SPECIAL = (0.0, -0.0, 1e-45, 1.1754943508222875e-38, 3.4028234663852886e38, -1.0, 16777216.0, 100.0, INF, -INF, NAN)


def header(step, rank, ranks, species, n):
    return (
        struct.pack("<5BHIfd", 8, 2, 4, 4, 8, 0xCAFE, 0xDEADBEEF, 1, 1)
        + struct.pack("<6i", 0, 3, step, 8, 8 + (rank if step > 50 else 0), 1)
        + struct.pack("<10f", 0.1, 0.5, 0.5 + (0.25 * rank if step > 50 else 0), 1, rank, 0, -2, 1, 1, 0)
        + struct.pack("<3if", rank, ranks, species, -1)
        + struct.pack("<3i", 32, 1, n)
    )


def dump(path, step, rank, ranks, species, particles):
    n = len(particles)
    with open(path, "wb") as f:
        f.write(header(step, rank, ranks, species, n))
        for _, value in particles:
            f.write(struct.pack("<fffiffff", *value))
        f.write(struct.pack("<3i", 8, 1, n))
        f.write(struct.pack("<%dQ" % n, *(key for key, _ in particles)))


def make_keys(n):
    keys = [0, 2**64 - 1, 2**63, 2**63 - 1]
    for i in range(n - len(keys)):
        keys.append((i + 1, (i % 5 + 1) << 46 | i, 2**64 - 2 - 1000003 * i)[i % 3])
    assert len(set(keys)) == n
    return keys


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--ranks", type=int, default=3)
    p.add_argument("--steps", default="0,7,100")
    p.add_argument("--particles", type=int, default=997)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--species", type=int, default=0)
    p.add_argument("--name", default="p")
    a = p.parse_args()
    steps = [int(s) for s in a.steps.split(",")]
    r = random.Random(a.seed)
    keys = make_keys(a.particles)
    os.makedirs(a.folder, exist_ok=True)
    for number, step in enumerate(steps):
        of_rank = [[] for _ in range(a.ranks)]
        for i, key in enumerate(keys):
            if i % 17 == 3 and number == 0 or i % 13 == 5 and number == len(steps) - 1:
                continue  # has not entered yet, or has left
            value = [r.uniform(-1, 1) for _ in range(3)] + [r.randrange(-5, 200)] + [r.gauss(0, 0.3) for _ in range(4)]
            if i % 29 == 0:
                value[r.choice((0, 2, 4, 7))] = r.choice(SPECIAL)
            rank = r.randrange(a.ranks - 1) if number == 0 and a.ranks > 1 else r.randrange(a.ranks)
            of_rank[rank].append((key, value))
        for rank in range(a.ranks):
            path = os.path.join(a.folder, "%s.%d.%d" % (a.name, step, rank))
            dump(path, step, rank, a.ranks, a.species, of_rank[rank])


if __name__ == "__main__":
    main()
