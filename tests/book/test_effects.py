"""What another value changes, and the values that were taken."""

import pandas as pd
import pytest

from bilevel_book.ledger import effects, values
from bilevel_book.released.stored import readings
from bilevel_core import experiments


def history(label, values, stop="seconds"):
    """One run for each value: from 1 at second 0 to the value at second 10, on a line."""
    return pd.concat(
        pd.DataFrame({"cpu_seconds": [0.0, 10.0], "loss": [1.0, value]}).assign(label=label, seed=seed, stop=stop)
        for seed, value in values.items()
    )


def test_an_effect_is_compared_over_the_seeds_that_both_have():
    got = effects.compare(history("a", {0: 0.6}), history("b", {0: 0.2, 1: 0.4, 2: 0.5}), "loss", "cpu_seconds", 10.0)
    assert (got.changed, got.unchanged, got.low, got.high, got.seeds) == (0.6, 0.2, 0.2, 0.5, 3)
    assert got.beyond
    assert str(got) == "0.600 instead of 0.200, outside the range of 3 seeds, 0.200 to 0.500"
    half = effects.compare(history("a", {0: 0.6}), history("b", {0: 0.2, 1: 1.0}), "loss", "cpu_seconds", 5.0)
    assert (half.changed, half.unchanged) == pytest.approx((0.8, 0.6))
    assert not half.beyond


def test_a_run_that_diverged_is_called_so():
    gone, kept = history("a", {0: 0.6}, stop="diverged"), history("b", {0: 0.2}).assign(cpu_seconds=[0.0, 20.0])
    got = effects.compare(gone, kept, "loss", "cpu_seconds", 20.0)
    assert got.beyond
    assert str(got) == "diverged, instead of 0.200"


def test_a_label_that_did_not_run_is_an_error_that_names_those_that_did(evidence):
    with pytest.raises(ValueError, match=r"group ablations of hyper-representation has no label 'delta 3'.*'delta 10'"):
        effects.of_fdehbo(evidence.representation, ["delta 3"])
    with pytest.raises(ValueError, match=r"released/cleaning has no label 'a defect'; it has .*'correct'"):
        effects.of_released("cleaning", "auc", ["a defect"])


def test_a_label_may_be_shown_in_other_words(evidence):
    (line,) = effects.of_fmbo(evidence.cleaning, ["(t + 1)^(-2/3)"], shown="eta {}")
    assert line.startswith("eta (t + 1)^(-2/3): train loss ")


@pytest.mark.slow
def test_a_defect_of_released_code_is_compared_over_its_seeds():
    (line,) = effects.of_released("cleaning", "auc", ["all upper batches from training"])
    auc = readings("cleaning", "auc")
    now, then = auc.loc["all upper batches from training"], auc.loc["correct"]
    assert line.startswith("stocBiO, all upper batches from training: auc ")
    assert f"{now.mean():.3f} instead of {then.mean():.3f}, " in line
    assert f"the range of {len(then)} seeds, {then.min():.3f} to {then.max():.3f}" in line
    assert now.mean() < then.mean()


def test_schedules_are_shown_as_formulas():
    assert values.setting("hyper-cleaning", "FMBO", "eta") == "eta = min(1, 100 (t + 1)^(-0.667))"
    assert values.setting("hyper-representation", "FdeHBO", "alpha", "delta") == "alpha = 0.008, delta = 0.1"


def test_steps_without_momentum_are_counted(evidence):
    long = evidence.cleaning.assign(step=evidence.cleaning.step * 10)
    eta = experiments.paper_settings("hyper-cleaning", "FMBO")["eta"]
    off = sum(eta(t) >= 1 for t in range(6000))
    assert 0 < off < 6000
    said = values.without_momentum("FMBO", long)
    assert said == f"FMBO: eta is 1, no momentum, in the first {off} of 6000 steps"
