"""Verdicts follow the evidence: change it, and the verdict changes."""

import pytest

from bilevel_book.ledger import counts, experiments, lemmas, of_experiment, rates
from bilevel_book.ledger.claim import CONSTRUCTION, TUNED, Printed
from bilevel_book.ledger.sentences import amigo_is_like_stocbio, as_stated, tuned_alike
from bilevel_book.verdicts import Verdict

SUPPORTED, SAME, _, CONTRADICTED, UNTESTABLE = Verdict


def changed(table, group, label, last=False, **columns):
    """A copy in which columns of a label's runs are multiplied, or have another value in their last rows."""
    table = table.copy()
    ours = (table.group == group) & (table.label == label)
    assert ours.any()
    rows = table[ours].groupby("seed").tail(1).index if last else table.index[ours]
    for column, value in columns.items():
        table.loc[rows, column] = value if last else table.loc[rows, column] * value
    return table


def test_a_rate_is_reported_and_gets_no_verdict(evidence):
    found = {name: rates.has_rate(evidence.rates, name, 3.5) for name in ("F2SA", "PZOBO-S")}
    assert {claim.verdict for claim in found.values()} == {UNTESTABLE}
    assert found["PZOBO-S"].numbers == "no number"
    assert found["F2SA"].numbers == (
        "slope minus -0.29 from -0.20 to +0.10 in 2 settings: 1 steeper, 1 with -0.29 in the interval, 0 flatter; "
        "steeper than the control SOBA in 1"
    )


@pytest.mark.parametrize(("name", "needs"), [("FdeHBO", False), ("PZOBO-S", False), ("FMBO", True), ("stocBiO", True)])
def test_a_loss_without_second_derivatives_tells_the_methods_apart(name, needs):
    assert counts.needs_second_derivatives(name) is needs


def test_products_and_loops_are_counted():
    claim = counts.one_product("FMBO")
    assert (claim.verdict, claim.numbers) == (CONTRADICTED, "2 H v and 2 J v")
    assert counts.one_product("SOBA").verdict is SUPPORTED  # one point: one product
    assert counts.one_product_in_differences().verdict is CONTRADICTED
    assert [counts.loops(*given).verdict for given in (("PZOBO-S", 2), ("PZOBO-S", 1), ("FdeHBO", 1))] == [
        SUPPORTED, CONTRADICTED, SUPPORTED,
    ]  # fmt: skip


@pytest.mark.slow
def test_statements_have_the_statuses_of_the_erratum():
    for claim in (lemmas.contraction(), lemmas.radius(), lemmas.constants_close("FMBO")):
        assert claim.verdict is Printed.FALSE
        assert "repaired" in claim.numbers
    assert lemmas.delta_condition().verdict is Printed.GAP  # the order of delta is right


def test_a_lemma_that_fails_once_is_false_as_printed(monkeypatch):
    assert lemmas.hypergradient_error_shrinks().verdict is SUPPORTED
    assert lemmas.count_failures([lemmas.Check(2.0, 1.0), lemmas.Check(1.0, 2.0)]) == (1, 2)
    monkeypatch.setattr(lemmas.statements, "upper_error_free", lambda *given: lemmas.Check(1.0, 0.5))
    assert lemmas.hypergradient_error_shrinks().verdict is Printed.FALSE


@pytest.mark.parametrize(
    ("judge", "group", "label", "holds", "fails"),
    [
        (experiments.without_second_order_nothing_moves, "stated", "alternating", {}, {"sigma_noisy": 0.49}),
        (experiments.v_needs_no_assumption, "stated", "FMBO", {}, {"norm_v": 10.1}),
        (experiments.ball_does_no_harm, "momentum", "main comparison", {"train_loss": 0.1}, {"train_loss": 0.9}),
    ],
)
def test_a_claim_that_is_true_by_construction_can_fail(evidence, judge, group, label, holds, fails):
    table = evidence.cleaning.assign(sigma_noisy=0.5, sigma_clean=0.5)
    assert judge(changed(table, group, label, last=True, **holds)).verdict is SUPPORTED
    assert judge(changed(table, group, label, last=True, **fails)).verdict is CONTRADICTED


def test_a_sentence_is_a_claim_with_its_ratios_and_what_decides_first(case_of):
    claim = as_stated(case_of(stated={"AID-FP": 0.5}), "C3")
    assert (claim.text, claim.verdict) == ("FMBO has a lower training loss than stocBiO and AID-FP", SAME)
    assert claim.numbers.startswith(
        "lower, stocBiO 1.00 (1.00 to 1.00, no difference); lower, AID-FP 0.50 (0.50 to 0.50, supported)"
    )
    assert claim.measure == "lower in the train loss, at equal seconds of the calibrated clock, 3 seeds"
    assert claim.command == "python -m bilevel_book verdicts hyper-cleaning"
    claim = as_stated(case_of(), "F1")
    assert "much: contradicted; needs our reading of a setting" in claim.numbers
    assert tuned_alike(case_of(), "F4").apart == TUNED


@pytest.mark.parametrize(
    ("judge", "ratios", "verdict"),
    [
        (as_stated, {"stated": {"stocBiO": 0.5, "AID-FP": 0.5}}, SUPPORTED),
        (as_stated, {"stated": {"stocBiO": 0.5, "AID-FP": 2.0}}, CONTRADICTED),
        (as_stated, {"alike": {"stocBiO": 0.5, "AID-FP": 0.5}}, SAME),  # each track has its own runs
        (tuned_alike, {"alike": {"stocBiO": 0.5, "AID-FP": 0.5}}, SUPPORTED),
    ],
)
def test_the_verdict_on_a_sentence_follows_its_runs(case_of, judge, ratios, verdict):
    assert judge(case_of(**ratios), "C3").verdict is verdict


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, SUPPORTED), (0.5, CONTRADICTED), (2.0, CONTRADICTED)])
def test_c6_means_no_difference_and_is_not_counted(case_of, ratio, verdict):
    claim = amigo_is_like_stocbio(case_of(stated={"stocBiO": ratio}))
    assert (claim.verdict, claim.apart) == (verdict, CONSTRUCTION)


def test_a_chapter_gets_the_claims_of_its_figure(case_of):
    found = of_experiment("hyper-cleaning", case_of())
    assert all(claim.where.startswith("Section 4.2") for claim in found)
    assert len(found) == 2 * 9 + 1  # C1 and C2 of three methods, C3, C4, C5, and C6
    with pytest.raises(ValueError, match="no figure of 'another'; it has those of hyper-representation"):
        of_experiment("another")
    with pytest.raises(ValueError, match=r"no sentence 'C1'; there are F1; .*C1, FMBO; C2, FMBO"):
        as_stated(case_of(), "C1")
