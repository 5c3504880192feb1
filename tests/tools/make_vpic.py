"""Dumps as VPIC writes them, of particles that move between ranks, enter and leave.

make_vpic.py FOLDER [--ranks N] [--steps A,B,...] [--particles N] [--seed N] [--species N] [--name NAME] [--plasma]

Writes FOLDER/NAME.STEP.RANK; NAME is p. IDs are of several kinds (dense, rank and counter, large, 0 and 2^64 - 1); odd numbers of
particles; the last rank has none in the first step; some floats are not numbers.

With --plasma, the particles are electrons that move from dump to dump: they gyrate in a magnetic field along y, and a wave along z
accelerates them.
"""

import argparse
import math
import os
import random
import struct

NAN, INF = float("nan"), float("inf")
SPECIAL = (0.0, -0.0, 1e-45, 1.1754943508222875e-38, 3.4028234663852886e38, -1.0, 16777216.0, 100.0, INF, -INF, NAN)


DT = 0.1
PLASMA_CELLS = (16, 1, 48)  # of a rank, of size 1; the ranks are side by side in x


def odd_grid(step, rank, ranks):
    """Numbers of cells, their size, and where they begin; not all are the same for all ranks and steps."""
    late = rank if step > 50 else 0
    return (8, 8 + late, 1), (0.5, 0.5 + 0.25 * late, 1), (rank, 0, -2)


def plasma_grid(step, rank, ranks):
    nx, ny, nz = PLASMA_CELLS
    return PLASMA_CELLS, (1, 1, 1), (nx * (rank - ranks / 2), 0, -nz / 2)


def header(step, rank, ranks, species, grid, n):
    cells, size, origin = grid
    return (
        struct.pack("<5BHIfd", 8, 2, 4, 4, 8, 0xCAFE, 0xDEADBEEF, 1, 1)
        + struct.pack("<6i", 0, 3, step, *cells)
        + struct.pack("<10f", DT, *size, *origin, 1, 1, 0)
        + struct.pack("<3if", rank, ranks, species, -1)
        + struct.pack("<3i", 32, 1, n)
    )


def dump(path, step, rank, ranks, species, grid, particles):
    n = len(particles)
    with open(path, "wb") as f:
        f.write(header(step, rank, ranks, species, grid, n))
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


def odd(r, keys, steps, ranks):
    """For each step: the particles of each rank, which jump."""
    for number in range(len(steps)):
        of_rank = [[] for _ in range(ranks)]
        for i, key in enumerate(keys):
            if i % 17 == 3 and number == 0 or i % 13 == 5 and number == len(steps) - 1:
                continue  # has not entered yet, or has left
            value = [r.uniform(-1, 1) for _ in range(3)] + [r.randrange(-5, 200)] + [r.gauss(0, 0.3) for _ in range(4)]
            if i % 29 == 0:
                value[r.choice((0, 2, 4, 7))] = r.choice(SPECIAL)
            rank = r.randrange(ranks - 1) if number == 0 and ranks > 1 else r.randrange(ranks)
            of_rank[rank].append((key, value))
        yield of_rank


def push(place, u, time, dt):
    """Move a particle; place and u change."""
    kick = 0.05 * math.sin(math.pi / 8 * place[0] - 0.5 * time) * dt
    turn = 0.1 * dt / math.sqrt(1 + u[0] ** 2 + u[1] ** 2 + u[2] ** 2)
    c, s = math.cos(turn), math.sin(turn)
    u[0], u[2] = c * u[0] - s * u[2], s * u[0] + c * u[2] + kick
    gamma = math.sqrt(1 + u[0] ** 2 + u[1] ** 2 + u[2] ** 2)
    for axis in range(3):
        place[axis] += u[axis] / gamma * dt


def plasma(r, keys, steps, ranks):
    """As odd, but places are in cells from the corner of the periodic box."""
    box = (PLASMA_CELLS[0] * ranks, PLASMA_CELLS[1], PLASMA_CELLS[2])
    particles = [([r.uniform(0, side) for side in box], [r.gauss(0, 0.3) for _ in range(3)]) for _ in keys]
    now = steps[0]
    for step in steps:
        of_rank = [[] for _ in range(ranks)]
        dt = DT * (step - now) / 8
        for key, (place, u) in zip(keys, particles):
            for i in range(8):
                push(place, u, DT * now + i * dt, dt)
            place[:] = [p % side for p, side in zip(place, box)]
            cell = [min(int(p), side - 1) for p, side in zip(place, box)]
            nx, ny, _ = PLASMA_CELLS
            voxel = cell[0] % nx + 1 + (nx + 2) * (cell[1] + 1 + (ny + 2) * (cell[2] + 1))
            offset = [2 * (p - c) - 1 for p, c in zip(place, cell)]
            of_rank[cell[0] // nx].append((key, [*offset, voxel, *u, 1]))
        now = step
        yield of_rank


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--ranks", type=int, default=3)
    p.add_argument("--steps")
    p.add_argument("--particles", type=int, default=997)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--species", type=int, default=0)
    p.add_argument("--name", default="p")
    p.add_argument("--plasma", action="store_true")
    a = p.parse_args()
    if a.plasma:
        move, grid, steps = plasma, plasma_grid, range(0, 481, 48)
    else:
        move, grid, steps = odd, odd_grid, (0, 7, 100)
    if a.steps:
        steps = [int(s) for s in a.steps.split(",")]
    os.makedirs(a.folder, exist_ok=True)
    for step, of_rank in zip(steps, move(random.Random(a.seed), make_keys(a.particles), steps, a.ranks)):
        for rank, particles in enumerate(of_rank):
            path = os.path.join(a.folder, "%s.%d.%d" % (a.name, step, rank))
            dump(path, step, rank, a.ranks, a.species, grid(step, rank, a.ranks), particles)


if __name__ == "__main__":
    main()
