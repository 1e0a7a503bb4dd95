"""Verdicts follow the evidence: change it, and the verdict changes."""

from dataclasses import replace

import pytest

from bilevel_book.ledger import cleaning, counts, lemmas, of_experiment, rates, representation
from bilevel_book.protocol.cells import Word
from bilevel_book.verdicts import Verdict
from bilevel_core.solvers import SOLVERS, FdeHBO


def set_at(table, group, label, **values):
    """A copy in which the last rows of a label's runs have these values."""
    table = table.copy()
    ours = table[(table.group == group) & (table.label == label)]
    last = ours.groupby("seed").tail(1).index
    assert len(last)
    for column, value in values.items():
        table.loc[last, column] = value
    return table


# Rates


def test_a_rate_is_judged_by_its_own_cells(evidence):
    found = {name: rates.has_rate(evidence.cells, name, 1.5) for name in ("FdeHBO", "F2SA", "PZOBO-S")}
    assert [claim.verdict for claim in found.values()] == [Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE]
    assert found["F2SA"].numbers == "of 3 cells 0 support, 0 prove nothing, 3 speak against, 0 say nothing"
    nothing = evidence.cells.assign(word=Word.NOTHING)
    assert rates.has_rate(nothing, "FdeHBO", 1.5).verdict is Verdict.UNDECIDED


def test_the_exponents_of_its_kind_are_those_of_the_table():
    claim = rates.bound_below_its_kind()
    assert (claim.verdict, claim.numbers) == (Verdict.HOLDS, "1.5 against 3.5 and 2.5")


def test_samples_are_iterations_times_batch():
    assert rates.samples_as_in_table("M", iterations=2, batch=1, said=3).verdict is Verdict.HOLDS
    assert rates.samples_as_in_table("M", iterations=2, batch=1, said=2).verdict is Verdict.FAILS


# Counts


@pytest.mark.parametrize(("name", "needs"), [("FdeHBO", False), ("F2SA", False), ("PZOBO-S", False), ("FMBO", True),
                                             ("SOBA", True), ("MRBO", True), ("stocBiO", True)])  # fmt: skip
def test_a_loss_without_second_derivatives_tells_the_methods_apart(name, needs):
    assert counts.needs_second_derivatives(name) is needs


def test_a_method_that_breaks_for_another_reason_gets_no_verdict(monkeypatch):
    class Broken(FdeHBO):
        def step(self, problem, state):
            raise RuntimeError("shapes do not fit")

    monkeypatch.setitem(SOLVERS, "broken", Broken)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        counts.needs_second_derivatives("broken")


def test_products_are_counted_and_not_believed():
    claim = counts.one_product("FMBO")
    assert (claim.verdict, claim.numbers) == (Verdict.FAILS, "2 H v and 2 J v")
    assert counts.one_product("SOBA").verdict is Verdict.HOLDS  # one point: one product
    assert counts.one_product_in_differences().verdict is Verdict.FAILS


def test_loops_are_those_of_the_settings():
    assert counts.loops("PZOBO-S", 2).verdict is Verdict.HOLDS
    assert counts.loops("PZOBO-S", 1).verdict is Verdict.FAILS
    assert counts.loops("FdeHBO", 1).verdict is Verdict.HOLDS


# Lemmas


def test_only_the_estimates_with_differences_are_biased():
    biases = lemmas.biases()
    assert biases["y"] == 0 < min(biases["v"], biases["x"])
    assert lemmas.biased(["v", "x"]).verdict is Verdict.HOLDS
    assert lemmas.biased(["y", "v", "x"]).verdict is Verdict.FAILS


@pytest.mark.slow
def test_what_the_erratum_calls_false_as_printed_does_not_hold():
    for claim in (lemmas.contraction(), lemmas.radius(), lemmas.delta_condition(), lemmas.constants_close("FMBO")):
        assert claim.verdict is Verdict.FAILS
        assert "repaired" in claim.numbers


def test_the_propositions_on_momentum_hold_and_a_false_one_would_not(monkeypatch):
    assert lemmas.hypergradient_error_shrinks().verdict is Verdict.HOLDS
    assert lemmas.linear_system_error_shrinks().verdict is Verdict.HOLDS
    monkeypatch.setattr(lemmas.statements, "upper_error_free", lambda *given: lemmas.Check(1.0, 0.5))
    assert lemmas.hypergradient_error_shrinks().verdict is Verdict.FAILS


def test_a_check_that_always_fails_is_counted():
    false = lemmas.Check(2.0, 1.0)
    true = lemmas.Check(1.0, 2.0)
    assert lemmas.broken([false, true, false]) == (2, 3)


# Stored runs


def test_the_weights_must_stand_still_without_second_order_terms(evidence):
    still = evidence.cleaning.assign(sigma_noisy=0.5, sigma_clean=0.5)
    assert cleaning.without_second_order_nothing_moves(still).verdict is Verdict.HOLDS
    moved = set_at(still, "main", "alternating", sigma_noisy=0.49)
    assert cleaning.without_second_order_nothing_moves(moved).verdict is Verdict.FAILS


def test_a_v_outside_its_ball_would_be_seen(evidence):
    assert cleaning.v_needs_no_assumption(evidence.cleaning).verdict is Verdict.HOLDS
    outside = set_at(evidence.cleaning, "main", "FMBO", norm_v=10.1)
    assert cleaning.v_needs_no_assumption(outside).verdict is Verdict.FAILS


def test_the_ball_does_harm_only_above_the_worst_run_without_it(evidence):
    for loss, verdict in ((0.2, Verdict.HOLDS), (0.9, Verdict.FAILS)):
        table = set_at(evidence.cleaning, "momentum", "main comparison", train_loss=loss)
        assert cleaning.ball_does_no_harm(table).verdict is verdict


def test_stability_is_the_largest_climb(evidence):
    table = evidence.cleaning
    for label in ("eta 0.9", "eta 0.5", "eta 0.1"):
        table = set_at(table, "momentum", label, train_loss=2.0)
    assert cleaning.decay_is_stable(table).verdict is Verdict.HOLDS
    table = set_at(table, "momentum", "main comparison", train_loss=3.0)
    assert cleaning.decay_is_stable(table).verdict is Verdict.FAILS


def scaled(table, group, label, **factors):
    """A copy in which columns of a label's runs are multiplied."""
    table = table.copy()
    ours = (table.group == group) & (table.label == label)
    assert ours.any()
    for column, factor in factors.items():
        table.loc[ours, column] *= factor
    return table


def test_one_method_that_is_not_beaten_spoils_much_faster_than_the_others(evidence):
    lower = scaled(evidence.cleaning, "main", "FMBO", test_loss=0.5)
    assert cleaning.faster_than_the_others(lower, "FMBO").verdict is Verdict.HOLDS
    spoilt = set_at(lower, "main", "VRBO", test_loss=0.0)
    assert cleaning.faster_than_the_others(spoilt, "FMBO").verdict is Verdict.FAILS


def test_more_stable_means_less_climb_than_each_of_the_others(evidence):
    table = evidence.cleaning
    for label in cleaning.OTHERS:
        table = set_at(table, "main", label, test_loss=2.0)
    assert cleaning.more_stable_than_the_others(table, "FMBO").verdict is Verdict.HOLDS
    assert cleaning.more_stable_than_the_others(evidence.cleaning, "FMBO").verdict is Verdict.FAILS  # nobody climbs


def test_at_equal_steps_the_runs_are_those_with_that_step(evidence):
    slow = scaled(evidence.cleaning, "main", "FMBO", train_loss=2.0)
    at_small = scaled(slow, "equal_steps", "FMBO, steps 0.1", train_loss=0.5)
    assert cleaning.fmbo_faster(at_small, "SOBA").verdict is Verdict.FAILS
    assert cleaning.fmbo_at_equal_steps(at_small, "SOBA", 0.1).verdict is Verdict.HOLDS
    assert cleaning.fmbo_at_equal_steps(at_small, "SOBA", 0.3).verdict is Verdict.FAILS
    both_slow = scaled(at_small, "equal_steps", "SOBA, steps 0.3", train_loss=4.0)
    assert cleaning.fmbo_at_equal_steps(both_slow, "SOBA", 0.3).verdict is Verdict.HOLDS


def test_a_lower_training_loss_is_lower_on_average(evidence):
    lower = scaled(evidence.cleaning, "main", "FMBO", train_loss=0.9)
    assert cleaning.fmbo_lower(lower, "stocBiO").verdict is Verdict.HOLDS
    assert cleaning.fmbo_lower(evidence.cleaning, "stocBiO").verdict is Verdict.FAILS  # equal


def test_momentum_must_win_on_every_seed(evidence):
    on = scaled(evidence.cleaning, "momentum", "main comparison", train_loss=0.5)
    assert cleaning.momentum_is_effective(on).verdict is Verdict.HOLDS
    assert cleaning.momentum_is_effective(evidence.cleaning).verdict is Verdict.FAILS
    on = scaled(evidence.representation, "ablations", "as in the paper", upper_loss=0.5)
    assert representation.momentum_lowers_variance(on).verdict is Verdict.HOLDS
    assert representation.momentum_lowers_variance(evidence.representation).verdict is Verdict.FAILS


def test_amigo_is_like_stocbio_within_a_tenth(evidence):
    for factor, verdict in ((1.09, Verdict.HOLDS), (1.11, Verdict.FAILS), (0.89, Verdict.FAILS)):
        table = scaled(evidence.cleaning, "main", "AmIGO", train_loss=factor)
        assert cleaning.amigo_like_stocbio(table).verdict is verdict


def test_the_figure_of_lenet_is_judged_rival_by_rival(evidence):
    table = scaled(evidence.representation, "main", "F2SA", upper_loss=2.0)
    assert representation.fdehbo_faster(table, "F2SA").verdict is Verdict.HOLDS
    assert representation.fdehbo_faster(table, "F3SA").verdict is Verdict.FAILS  # equal
    assert representation.fdehbo_more_accurate(table).verdict is Verdict.FAILS
    better = scaled(table, "main", "FdeHBO", upper_accuracy=1.1)
    assert representation.fdehbo_more_accurate(better).verdict is Verdict.HOLDS
    assert representation.fdehbo_more_stable(table).verdict is Verdict.FAILS  # nobody climbs
    for label in representation.RIVALS:
        table = set_at(table, "main", label, upper_loss=2.0)
    assert representation.fdehbo_more_stable(table).verdict is Verdict.HOLDS


def test_sensitivity_to_delta_is_a_tenth(evidence):
    assert representation.sensitive_to_delta(evidence.representation).verdict is Verdict.FAILS
    table = set_at(evidence.representation, "ablations", "delta 10", upper_loss=2.0)
    assert representation.sensitive_to_delta(table).verdict is Verdict.HOLDS


def test_the_dimensions_are_right_and_the_layers_are_not():
    assert representation.dimensions().verdict is Verdict.HOLDS
    assert representation.last_two_layers().verdict is Verdict.FAILS


def test_a_rival_that_did_not_run_is_an_error_that_names_those_that_did(evidence):
    with pytest.raises(ValueError, match=r"group main of hyper-cleaning has no label 'SOBO'; it has 'FMBO', 'stocBiO'"):
        cleaning.fmbo_faster(evidence.cleaning, "SOBO")


@pytest.mark.slow
def test_a_chapter_sees_the_claims_of_its_figure(evidence):
    found = of_experiment("hyper-cleaning", evidence.cleaning)
    assert len(found) == 16
    assert all(claim.where.startswith("Section 4.2") for claim in found)
    changed = replace(evidence, cleaning=set_at(evidence.cleaning, "main", "AmIGO", train_loss=9.0))
    assert of_experiment("hyper-cleaning", changed.cleaning)[-1].verdict is Verdict.FAILS
    with pytest.raises(ValueError, match="no figure of 'another'; it has those of hyper-representation"):
        of_experiment("another", evidence.cleaning)
