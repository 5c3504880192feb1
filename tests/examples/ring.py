"""Example: the trajectory of a particle, and an epoch as a NumPy array.

    pip install ./src/python
    python3 ring.py ring 123
"""

import sys

import numpy as np

import deltafs

with deltafs.open(sys.argv[1]) as d:
    track = d.track(int(sys.argv[2]))
    for label, point in zip(d.labels, track):
        print(f"step {label}: {point['x']:g} {point['y']:g}")
    last = d.epoch(d.labels[-1])
    print("mean of x at the last step:", np.mean(last["x"], dtype=float))
