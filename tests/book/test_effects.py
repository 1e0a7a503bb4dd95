"""What another value changes, and the values that were taken."""

import numpy as np
import pandas as pd

from bilevel_book import experiments
from bilevel_book.ledger import effects, values


def history(values, rows=25, stop="steps", end=30.0):
    """One run for each seed and value: it starts at 1 and settles at the value at once."""
    runs = {seed: [1.0] + [value] * (rows - 1) for seed, value in values.items()}
    seconds = np.linspace(0, end, rows)
    return pd.concat(pd.DataFrame({"seconds": seconds, "loss": runs[s], "seed": s, "stop": stop}) for s in runs)


UNCHANGED = {0: 0.2, 1: 0.4, 2: 0.5}


def compared(changed, unchanged):
    return effects.compared(changed, unchanged, "loss", "seconds")


def test_an_effect_is_a_paired_ratio_with_its_interval():
    twice = history({seed: 2 * value for seed, value in UNCHANGED.items()})
    assert compared(twice, history(UNCHANGED)) == "0.733 instead of 0.367: 2.00 to 2.00 times (3 seeds, 30 s)"
    r = np.log([1, 2, 1])  # t with two degrees of freedom: 4.303
    low, high = np.exp(r.mean() + np.array([-1, 1]) * 4.3027 * r.std(ddof=1) / np.sqrt(3))
    mixed = compared(history({0: 0.2, 1: 0.8, 2: 0.5}), history(UNCHANGED))
    assert mixed == f"0.500 instead of 0.367: {low:.2f} to {high:.2f} times (3 seeds, 30 s)"


def test_only_shared_seeds_and_the_shared_budget_are_read():
    longer = history(UNCHANGED, rows=49, end=60.0)
    longer.loc[longer.seconds > 30, "loss"] = 9.0
    assert compared(history({0: 0.6}), longer) == "0.600 instead of 0.200 (one seed, 30 s)"


def test_runs_with_few_rows_are_read_at_their_last_one():
    falls = history({0: 0.2, 1: 0.2}, rows=4)
    falls.loc[falls.seconds == 30, "loss"] = 0.1
    got = compared(falls, history({0: 0.2, 1: 0.2}, rows=49))
    assert got == "0.100 instead of 0.200: 0.50 to 0.50 times (2 seeds, 30 s)"
    gone = pd.concat([history({0: 0.6}, rows=9, stop="diverged", end=10.0), history({1: 0.6})])
    assert compared(gone, history({0: 0.2, 1: 0.2})) == "diverged on 1 of 2 instead of 0.200 (2 seeds, 30 s)"


def test_choices_are_compared_at_equal_seconds_and_momentum_at_equal_steps(evidence):
    table = evidence.cleaning.copy()
    base, other = ((table.group == "main") & (table.label == "MRBO"), table.label == "MRBO, eta 0.9")
    table.loc[other, "seconds"] *= 0.5
    table.loc[base | other, "train_loss"] = table.seconds + 1.0  # the same at every second, and not at every row
    (line,) = effects.of_method(table, "MRBO", ["MRBO, eta 0.9"])
    assert line.endswith(": 1.00 to 1.00 times (3 seeds, 30 s)")
    (line,) = effects.of_fmbo(table, ["(t + 1)^(-2/3)"], shown="eta {}")
    assert line.startswith("eta (t + 1)^(-2/3): train loss ")
    assert line.endswith(": 1.00 to 1.00 times (3 seeds, 4000 steps)")


def test_settings_are_shown_as_formulas():
    assert values.setting("hyper-cleaning", "FMBO", "eta") == "eta = min(1, 100 (t + 1)^(-0.667))"
    assert values.setting("hyper-representation", "FdeHBO", "alpha", "delta") == "alpha = 0.008, delta = 0.1"


def test_steps_without_momentum_are_counted(evidence):
    eta = experiments.paper_settings("hyper-cleaning", "FMBO")["eta"]
    off = sum(eta(t) >= 1 for t in range(6000))
    for steps, first in ((6000, off), (off // 2, off // 2)):
        said = values.without_momentum("FMBO", evidence.cleaning.assign(step=steps))
        assert said == f"FMBO: eta is 1, no momentum, in the first {first} of {steps} steps"
