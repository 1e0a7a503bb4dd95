"""The pictures of the page, each with what is said about it to those who do not see it."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bilevel_book.checklist.changes import SCATTER, TRIALS, by_trials, leaders
from bilevel_book.checklist.coverage import coverage, words
from bilevel_book.figures import checklist as figures
from bilevel_book.sliders import Explore, choice, explore
from bilevel_book.verdicts.deciding import Verdict

SEEDS = (2, 3, 4, 5, 6, 8, 10, 15, 20)
RATIO = np.geomspace(0.7, 1 / 0.7, 81)  # with 1 in the middle
OFTEN = 0.9
Picture = tuple[Figure, str]


def coverages() -> Picture:
    table = pd.DataFrame({n: coverage(n) for n in SEEDS}).T
    rows = (f"{n} seeds: {', '.join(f'{name} {p:.0%}' for name, p in row.items())}" for n, row in table.iterrows())
    alt = f"How often intervals of three kinds that promise 95% hold the truth. {'; '.join(rows)}."
    return figures.coverages(table), alt


def trials() -> Picture:
    table, ahead = by_trials(), leaders()
    title = f"Lowest with 4 trials: {ahead[4]}. With {TRIALS[-1]}: {ahead[TRIALS[-1]]}"
    rows = (f"{name} {', '.join(f'{loss:.3g}' for loss in table.loc[list(TRIALS), name])}" for name in table)
    alt = f"Test loss of the best of {', '.join(map(str, TRIALS))} trials of each method: {'; '.join(rows)}."
    return figures.against_trials(table, title), alt


def chances(n: int, margin: int) -> dict[Verdict, np.ndarray]:
    return words(RATIO, n, margin / 100, SCATTER)


def found(n: int, margin: int) -> str:
    """How large a lead must be to be seen, and what is said of equals."""
    said = chances(n, margin)
    seen = RATIO[said[Verdict.HOLDS] >= OFTEN]
    lead = f"a lead of {100 * (1 - seen[-1]):.0f} %" if len(seen) else f"no lead up to {100 * (1 - RATIO[0]):.0f} %"
    alike = 100 * said[Verdict.ALIKE][len(RATIO) // 2]
    return f"{n} seeds, margin {margin} %: {lead} is found nine times in ten; equals are called alike in {alike:.0f} %"


def verdicts() -> Explore:
    return explore(
        lambda n, margin: figures.chances_of_words(RATIO, chances(n, margin), margin / 100),
        alt=lambda n, margin: f"The chance of each verdict against the true ratio. {found(n, margin)}.",
        title=found,
        n=choice((3, 5, 10, 20), "n, seeds", 5),
        margin=choice((2, 5, 10), "m, margin in %", 5),
    )


PICTURES: dict[str, Callable[[], Picture | Explore]] = {"coverage": coverages, "trials": trials, "verdicts": verdicts}
