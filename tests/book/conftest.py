"""Evidence that is made up, so that a test can change it and see a verdict follow."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from bilevel_book import experiments
from bilevel_book.ledger import Evidence
from bilevel_book.verdicts import judging, paper

COLUMNS = {
    "hyper-representation": ["upper_loss", "upper_error", "selection_loss", "test_accuracy"],
    "hyper-cleaning": ["train_loss", "test_loss", "test_accuracy", "sigma_noisy", "sigma_clean", "auc"],
}


def made_up(experiment, *judged):
    """A history for the runs of the ledgers, of three seeds: losses that fall, a little higher for each seed."""
    share = np.linspace(0, 1, 97)
    tables = []
    for run in experiments.sweep(experiment) + (experiments.sweep(experiment, "next", [*judged]) if judged else []):
        if run.seed % 10 > 2:
            continue
        falling = 8 * np.exp(-20 * share) + 0.1 + 0.01 * (run.seed % 10)
        axes = {"step": share * run.budget.get("steps", 600), "gradients": 1000 * share, "equivalents": 3000 * share}
        axes["seconds"] = 60 * share
        numbers = dict.fromkeys(COLUMNS[experiment], falling)
        named = {name: getattr(run, name) for name in ("group", "label", "solver", "seed")}
        tables.append(pd.DataFrame({**axes, **numbers, **named, "norm_v": 5.0, "stop": "steps", "diverged_at": None}))
    return pd.concat(tables, ignore_index=True)


class MadeUp(paper.Sentence):
    """A sentence whose methods show the same on three seeds, but for the rivals in `ratios`."""

    ratios: ClassVar = {}  # by track and rival: the ratio of the first to it

    def numbers(self, track, clock="alone", margin=0.05):
        pairs = {
            rival: judging.Pair(
                np.log(np.array([0.999, 1.0, 1.001]) * self.ratios.get((track, rival), 1)), np.zeros(3), (0, 0),
                np.zeros((3, 2), bool),
            )
            for rival in self.rivals
        }  # fmt: skip
        tables = [judging.decide(pairs, margin).reset_index().assign(measure=each) for each, _ in self.measures]
        return pd.concat(tables, ignore_index=True)

    def missing(self, track):
        return []

    def runs_hash(self, track):
        return f"{self.id}, {track}"


def case_of(**ratios):
    """The sentences of the protocol about made-up runs: case_of(stated={"stocBiO": 0.5})."""
    flat = {(track, rival): ratio for track, own in ratios.items() for rival, ratio in own.items()}
    kind = type("Case", (MadeUp,), {"ratios": flat})
    return lambda identifier: kind(**vars(paper.sentence(identifier)))


@pytest.fixture(name="case_of", scope="session")
def case_of_fixture():
    return case_of


@pytest.fixture(scope="session")
def evidence():
    rate = pd.DataFrame({"off": [-0.2, 0.1], "low": [-0.3, 0.0], "high": [-0.1, 0.2], "gap to SOBA": [-0.1, 0.1]})
    cleaning = made_up("hyper-cleaning", "stated", "same_steps")
    return Evidence(made_up("hyper-representation"), cleaning, case_of(), {"F2SA": rate})


def history(label, seed, seconds, losses, solver="SOBA", diverged_at=None):
    n = len(losses)
    stop = "seconds" if diverged_at is None else "diverged"
    return pd.DataFrame(
        {
            "step": range(n), "seconds": seconds, "gradients": [10 * t for t in range(n)], "upper_loss": losses,
            "group": "main", "label": label, "solver": solver, "seed": seed, "stop": stop,
            "diverged_at": np.nan if diverged_at is None else diverged_at,
        }
    )  # fmt: skip


@pytest.fixture(name="history")
def history_fixture():
    """Makes the history of one run."""
    return history


@pytest.fixture
def table():
    """Three labels, of which C diverged."""
    return pd.concat(
        [
            history("A", 0, [0, 10, 20, 30], [8.0, 4.0, 2.0, 1.0]),
            history("A", 1, [0, 12, 24, 36], [8.0, 6.0, 5.0, 3.0]),
            history("B", 0, [0, 5, 10, 30], [8.0, 3.0, 3.5, 2.5]),
            history("B", 1, [0, 5, 10, 30], [8.0, 3.0, 2.0, 2.5]),
            history("C", 0, [0, 15, 30], [8.0, 1.0, np.nan], diverged_at=2),
        ],
        ignore_index=True,
    )
