"""One table of what everything costs, each number beside its floor or its peer, measured in one run.

    python benchmarks/bench.py                   all of it, stored as results/cost/table.csv; six minutes on one core
    python benchmarks/bench.py lenet cleaning    only these parts, not stored

One thread, CPU time, candidates taking turns, medians: see clock.py. Peers that are not installed are left out and
named; `pip install -r benchmarks/requirements.txt` installs them.
"""

import sys
import time

import torch

import against_peers
import overheads
import steps
from clock import machine
from table import HEADER, Row, line, store

PARTS = {  # what measures it, and how often
    "lenet": (steps.on_lenet, 7),
    "fmbo": (steps.fmbo_over_bare_products, 200),
    "cleaning": (steps.on_cleaning, 9),
    "hypergradient": (against_peers.hypergradients, 7),
    "reverse": (against_peers.unrolled, 5),
    "processes": (overheads.processes, 3),
    "checkpoint": (overheads.checkpoints, 5),
    "run": (overheads.runner, 9),
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {', '.join(unknown)}; the parts are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    rows: list[Row] = []
    begin = time.perf_counter()
    print(HEADER)
    for name in names or PARTS:
        measure, rounds = PARTS[name]
        for row in measure(rounds):
            print(line(row), flush=True)
            rows.append(row)
    goals = [row.met for row in rows if row.met]
    print(f"{goals.count('yes')} of {len(goals)} goals met; {time.perf_counter() - begin:.0f} s")
    if not names:
        store(rows, "table", machine() | {"rounds": {name: rounds for name, (_, rounds) in PARTS.items()}})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
