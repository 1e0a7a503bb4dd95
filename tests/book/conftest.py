"""Evidence that is made up, so that a test can change it and see a verdict follow."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from bilevel_book import experiments
from bilevel_book.ledger import Evidence
from bilevel_book.verdicts import judging, paper, sentences

COLUMNS = {
    "hyper-representation": ["upper_loss", "upper_error", "selection_loss", "test_accuracy"],
    "hyper-cleaning": ["train_loss", "test_loss", "test_accuracy", "sigma_noisy", "sigma_clean", "auc"],
}


def made_up(experiment):
    """A history for the runs that decide, of three seeds: losses that fall, a little higher for each seed."""
    share = np.linspace(0, 1, 97)
    tables = []
    for run in experiments.sweep(experiment):
        if run.seed % 10 > 2:
            continue
        falling = 8 * np.exp(-20 * share) + 0.1 + 0.01 * (run.seed % 10)
        axes = {"step": share * run.budget.get("steps", 600), "gradients": 1000 * share, "equivalents": 3000 * share}
        axes["seconds"] = 60 * share
        numbers = dict.fromkeys(COLUMNS[experiment], falling)
        named = {name: getattr(run, name) for name in ("group", "label", "solver", "seed")}
        tables.append(pd.DataFrame({**axes, **numbers, **named, "norm_v": 5.0, "stop": "steps", "diverged_at": None}))
    return pd.concat(tables, ignore_index=True)


class AllAlike(paper.Sentence):
    """A sentence whose methods show the same on three seeds, if nothing else is said."""

    def missing(self, track):
        return []

    def numbers(self, track, clock="alone", margin=0.05):
        pair = judging.Pair(np.log([0.999, 1.0, 1.001]), np.zeros(3), (0, 0), np.zeros((3, 2), bool))
        tables = (judging.decide(dict.fromkeys(self.rivals, pair), margin) for _ in self.measures)
        return pd.concat(
            [table.reset_index().assign(measure=each) for table, (each, _) in zip(tables, self.measures, strict=True)]
        )


def case_of(cleaning=None, representation=None):
    """The sentences of the protocol about these runs, whatever is stored."""
    tables = {"hyper-cleaning": cleaning, "hyper-representation": representation}

    def case(identifier):
        if identifier in sentences.ON_LENET:
            return AllAlike(**vars(paper.SENTENCES[identifier]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sentences, "complete", lambda name, group, folder: tables[name].query("group == @group"))
            return sentences.case(identifier)

    return cache(case)


@pytest.fixture(name="case_of", scope="session")
def case_of_fixture():
    return case_of


@pytest.fixture(scope="session")
def evidence():
    rate = pd.DataFrame({"off": [-0.2, 0.1], "low": [-0.3, 0.0], "high": [-0.1, 0.2], "gap to SOBA": [-0.1, 0.1]})
    representation, cleaning = made_up("hyper-representation"), made_up("hyper-cleaning")
    return Evidence(representation, cleaning, case_of(cleaning, representation), {"F2SA": rate})


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
