"""Whether `deltafs get --format json` gives, for each ID, the rows that hdf5_vpic wrote.

    hdf5_vpic.py ids ROWS                      all IDs
    hdf5_vpic.py check ANSWERS STEPS ROWS      ROWS of all ranks
"""
import json
import sys

if sys.argv[1] == "ids":
    print("\n".join(map(str, range(int(sys.argv[2])))))
    sys.exit()
answers, steps, rows = json.load(open(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4])
assert len(answers) == steps * rows, "%d rows instead of %d of each of %d steps" % (len(answers), rows, steps)
for i, row in enumerate(answers):
    key, step = divmod(i, steps)
    right = {"key": key, "epoch": step, "id2": 2 * key}
    for variable, name in enumerate(("px", "py", "pz", "x", "y", "z"), start=2):
        right[name] = key % 4096 + variable / 8 + step * 8192
    assert {name: row[name] for name in right} == right, (row, right)
print("%d rows of %d IDs in %d steps: right" % (len(answers), rows, steps))
