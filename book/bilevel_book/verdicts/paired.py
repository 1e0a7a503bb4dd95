"""What one changed thing does, from readings of a few paired seeds.

    r_s = log(what is read with the change / what is read without it)        on seed s, both at the same place

The mean of r over the seeds has an interval by Student's t, and a word by the rules of the protocol, but at one place
alone: runs that are too short to be read at 24 marks have no second one.
"""

import numpy as np
import pandas as pd

from bilevel_book.verdicts.deciding import Verdict, decide

WORDS = {Verdict.HOLDS: "lower", Verdict.FAILS: "higher", Verdict.ALIKE: "alike", Verdict.UNDECIDED: "undecided"}


def against(read: pd.DataFrame, unchanged: str = "correct") -> pd.DataFrame:
    """For each other row of `read`: the ratio to the unchanged one, beside what `decide` says of it.

    `word` is lower, higher, alike or undecided. Holm's rule shares the 5 % among the rows, and the interval from low to
    high is the one by which a row was judged.
    """
    r = np.log(read.drop(index=unchanged) / read.loc[unchanged])
    n, none = r.shape[1], dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    error = r.std(axis=1, ddof=1) / np.sqrt(n)
    judged = decide(pd.DataFrame({"rival": r.index, "n": n, "mean": r.mean(axis=1), "error": error} | none))
    return judged.assign(ratio=np.exp(judged["mean"]), word=judged.verdict.map(WORDS))
