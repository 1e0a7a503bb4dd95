"""The long version of Chapter 14: `python benchmarks/rates.py`.

Writes results/rate/schedules_METHOD.csv, the averages A(T) of `bilevel_book.rates` up to T = 100000 for every noise and
start, and results/rate/frozen_METHOD.csv, up to T = 10000 with constant steps: schedules frozen at a time tau. What is
stored is not done again. In all 23 minutes of CPU time on one core.
"""

import time

import pandas as pd
import torch

from bilevel_book import rates
from bilevel_core.files import write_atomically

LONG, SHORT = rates.horizons(10, 1e5), rates.horizons(100, 1e4, per_decade=5)
FAIR_STARTS = rates.STARTS[1:]


def write(kind: str, method: str, table: pd.DataFrame) -> None:
    write_atomically(rates.file(kind, method), table.to_csv(index=False, float_format="%.5g").encode())


def with_schedules(method: str) -> None:
    if rates.file("schedules", method).exists():
        return
    print(f"{method}: {LONG[-1]} steps", flush=True)
    values = rates.averages(rates.stack(rates.NOISES, rates.STARTS), rates.solver(method), LONG)
    write("schedules", method, rates.table(values, rates.NOISES, rates.STARTS, LONG))


def with_constant_steps(method: str) -> None:
    path = rates.file("frozen", method)
    done = pd.read_csv(path) if path.exists() else pd.DataFrame({"tau": []})
    for tau in sorted(set(rates.TAUS[method]) - set(done.tau)):
        print(f"{method} frozen at {tau}: {SHORT[-1]} steps", flush=True)
        values = rates.averages(rates.stack([rates.NOISE], FAIR_STARTS), rates.solver(method, tau), SHORT)
        rows = rates.table(values, [rates.NOISE], FAIR_STARTS, SHORT).assign(tau=tau)
        done = pd.concat([done, rows]) if len(done) else rows
        write("frozen", method, done)


def main() -> None:
    torch.set_num_threads(1)
    begin = time.process_time()
    for method in (*rates.CLAIMED, rates.CONTROL):
        with_schedules(method)
    for method in rates.CLAIMED:
        with_constant_steps(method)
    print(f"done, {time.process_time() - begin:.0f} s of CPU time")


if __name__ == "__main__":
    main()
