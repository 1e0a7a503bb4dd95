"""What a stored experiment says: tables of where each method ended, the claims with their verdicts, the figures."""

from pathlib import Path

import pandas as pd

from bilevel_book import ledger
from bilevel_book.curves import tuning_scores
from bilevel_book.figures import reproduction
from bilevel_book.verdicts import mean_and_range
from bilevel_core import experiments


def ends(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """One row for each label: runs, how many diverged, seconds a step, and each column at the end, over the seeds.

    A diverged run counts with its last finite value.
    """
    rows = {}
    for label, runs in table.groupby("label", sort=False):
        last = runs.groupby("seed").last()  # of each column, the last value that is there
        each = (last.cpu_seconds / last.step).mean()
        row = {"runs": len(last), "diverged": int((last.stop == "diverged").sum()), "s a step": f"{each:.2g}"}
        rows[label] = row | {"steps": round(last.step.mean())} | {name: mean_and_range(last[name]) for name in columns}
    return pd.DataFrame(rows).T


def report(experiment: str, size: str, folder: Path) -> None:
    """Print the tables and verdicts; write a figure for each group of runs, against time and against gradients."""
    file, table = experiments.load(experiment), experiments.read(experiment, size, folder=folder)
    columns, plans = file["columns"], file["sizes"][size]
    figures = folder / experiment / size / "figures"
    figures.mkdir(exist_ok=True)
    for group, runs in table.groupby("group", sort=False):
        print(f"\n{group}\n")
        if plans[group].get("grid"):
            print(tuning_scores(runs, columns[0]).to_string(index=False))
            continue
        print(ends(runs, columns).to_string())
        for axis in ("cpu_seconds", "gradients"):
            picture = reproduction.race(runs, columns, axis, f"{experiment}: {group}")
            picture.savefig(figures / f"{group}_{axis}.png")
    for claim in ledger.of_experiment(experiment, table) if size == "full" else []:
        print(f"\n[{claim.verdict}] {claim.text} ({claim.where})\n    {claim.measure}: {claim.numbers}")
    print(f"\nfigures in {figures}")
