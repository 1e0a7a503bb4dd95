"""The ledgers: verdicts follow the evidence, nothing is left without a number or a reason, what they name exists."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bilevel_book.ledger import (
    CHOICE_SECTIONS,
    CLAIM_SECTIONS,
    Evidence,
    choices,
    counts,
    effects,
    judge,
    lemmas,
    rates,
    render,
    runs,
    sentences,
    tally,
)
from bilevel_book.ledger import evidence as evidence_module
from bilevel_book.ledger.evidence import complete
from bilevel_book.paths import RESULTS
from bilevel_book.verdicts import Verdict
from bilevel_core import experiments

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "hyper-representation": ["upper_loss", "upper_accuracy", "lower_loss", "lower_accuracy", "test_accuracy"],
    "hyper-cleaning": ["train_loss", "test_loss", "test_accuracy", "sigma_noisy", "sigma_clean", "auc"],
}


def made_up(experiment):
    """A history for every run that the experiment's file describes: losses that fall, a little higher for each seed."""
    rows = np.arange(7)
    tables = []
    for one in experiments.sweep(experiment, "full"):
        steps, seconds = one.budget.get("steps", 600), one.budget.get("seconds", 60)
        falling = np.exp(-rows / 3) + 0.1 + 0.01 * one.seed
        table = pd.DataFrame({"step": rows * steps / 6, "cpu_seconds": rows * seconds / 6, "gradients": rows * 1000})
        numbers = dict.fromkeys(COLUMNS[experiment], falling)
        named = {name: getattr(one, name) for name in ("group", "label", "solver", "seed")}
        tables.append(table.assign(**numbers, **named, norm_v=5.0, stop="seconds", diverged_at=None))
    return pd.concat(tables, ignore_index=True)


def measured(**means):
    """A table of slopes or levels, each with an interval of 0.02 on both sides."""
    rows = [{"method": name, "slope": m, "mean": m, "low": m - 0.02, "high": m + 0.02} for name, m in means.items()]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def evidence():
    slopes = measured(FdeHBO=-0.67, F3SA=-0.45, F2SA=-0.4)
    far = measured(FdeHBO=0.1, F3SA=0.5, F2SA=0.9)
    return Evidence(made_up("hyper-representation"), made_up("hyper-cleaning"), slopes, slopes, far)


@pytest.fixture(scope="module")
def ledger(evidence):
    return judge(evidence)


@pytest.fixture(scope="module")
def open_choices(evidence):
    return choices(evidence)


def verdicts(claims):
    return [claim.verdict for claim in claims]


def set_at(table, group, label, **values):
    """A copy in which the last rows of a label's runs have these values."""
    table = table.copy()
    ours = table[(table.group == group) & (table.label == label)]
    last = ours.groupby("seed").tail(1).index
    assert len(last)
    for column, value in values.items():
        table.loc[last, column] = value
    return table


# Verdicts


@pytest.mark.parametrize(
    ("slope", "verdict"), [(-0.9, Verdict.HOLDS), (-0.66, Verdict.HOLDS), (-0.64, Verdict.FAILS), (-0.5, Verdict.FAILS)]
)
def test_a_rate_holds_when_its_interval_reaches_the_claim_or_is_steeper(evidence, slope, verdict):
    seen = replace(evidence, slopes=measured(FdeHBO=slope))
    assert verdicts(rates.has_rate("FdeHBO", 1.5)(seen)) == [verdict]


def test_a_rate_that_was_not_measured_is_not_testable(evidence):
    assert verdicts(rates.has_rate("FMBO", 1.5)(evidence)) == [Verdict.UNTESTABLE]


def test_the_margin_needs_intervals_that_do_not_touch(evidence):
    assert verdicts(rates.margin(evidence)) == [Verdict.HOLDS, Verdict.HOLDS]
    near = replace(
        evidence,
        fair=measured(FdeHBO=-0.47, F3SA=-0.45, F2SA=-0.4),
        far=measured(FdeHBO=0.88, F3SA=0.95, F2SA=0.9),
    )
    assert verdicts(rates.margin(near)) == [Verdict.FAILS, Verdict.FAILS]


def test_the_table_of_the_paper_agrees_with_itself():
    for row in rates.TABLE.values():
        assert row.samples == row.iterations + row.batch


@pytest.mark.parametrize(("name", "needs"), [("FdeHBO", False), ("F2SA", False), ("PZOBO-S", False), ("FMBO", True),
                                             ("SOBA", True), ("MRBO", True), ("stocBiO", True)])  # fmt: skip
def test_a_loss_without_second_derivatives_tells_the_methods_apart(name, needs):
    assert counts.needs_second_derivatives(name) is needs


def test_products_are_counted_and_not_believed(evidence):
    assert verdicts(counts.one_product("FMBO")(evidence)) == [Verdict.FAILS]
    assert "2 H v and 2 J v" in counts.one_product("FMBO")(evidence)[0].numbers
    assert verdicts(counts.one_product("SOBA")(evidence)) == [Verdict.HOLDS]  # one point: one product


def test_only_the_estimates_with_differences_are_biased(evidence):
    biases = lemmas.biases()
    assert biases["y"] == 0 < min(biases["v"], biases["x"])
    assert verdicts(lemmas.biased("vx")(evidence)) == [Verdict.HOLDS]
    assert verdicts(lemmas.biased("yvx")(evidence)) == [Verdict.FAILS]


def test_what_the_erratum_calls_false_as_printed_does_not_hold(evidence):
    for each in (lemmas.contraction, lemmas.radius, lemmas.delta_condition, lemmas.constants_close("FMBO")):
        (claim,) = each(evidence)
        assert claim.verdict is Verdict.FAILS
        assert "repaired" in claim.numbers


def test_the_propositions_on_momentum_hold_and_a_false_one_would_not(evidence):
    for name, check in (("1", lemmas.statements.upper_error_free), ("3", lemmas.statements.helper_error_free)):
        assert verdicts(lemmas.momentum_errors(name, check, "")(evidence)) == [Verdict.HOLDS]
    halved = lemmas.momentum_errors("", lambda *given: lemmas.Check(1.0, 0.5), "")
    assert verdicts(halved(evidence)) == [Verdict.FAILS]


def test_a_check_that_always_fails_is_counted():
    false = lemmas.Check(2.0, 1.0)
    true = lemmas.Check(1.0, 2.0)
    assert lemmas.broken([false, true, false]) == (2, 3)


def test_the_weights_must_stand_still_without_second_order_terms(evidence):
    still = evidence.cleaning.assign(sigma_noisy=0.5, sigma_clean=0.5)
    assert verdicts(runs.without_second_order_nothing_moves(replace(evidence, cleaning=still))) == [Verdict.HOLDS]
    moved = set_at(still, "main", "alternating", sigma_noisy=0.49)
    assert verdicts(runs.without_second_order_nothing_moves(replace(evidence, cleaning=moved))) == [Verdict.FAILS]


def test_a_v_outside_its_ball_would_be_seen(evidence):
    assert verdicts(runs.v_needs_no_assumption(evidence)) == [Verdict.HOLDS]
    outside = set_at(evidence.cleaning, "main", "FMBO", norm_v=10.1)
    assert verdicts(runs.v_needs_no_assumption(replace(evidence, cleaning=outside))) == [Verdict.FAILS]


def test_the_ball_does_harm_only_above_the_worst_run_without_it(evidence):
    for loss, verdict in ((0.2, Verdict.HOLDS), (0.9, Verdict.FAILS)):
        table = set_at(evidence.cleaning, "momentum", "main comparison", train_loss=loss)
        assert verdicts(runs.ball_does_no_harm(replace(evidence, cleaning=table))) == [verdict]


def test_stability_is_the_largest_climb(evidence):
    table = evidence.cleaning
    for label in ("eta 0.9", "eta 0.5", "eta 0.1"):
        table = set_at(table, "momentum", label, train_loss=2.0)
    assert verdicts(runs.decay_is_stable(replace(evidence, cleaning=table))) == [Verdict.HOLDS]
    table = set_at(table, "momentum", "main comparison", train_loss=3.0)
    assert verdicts(runs.decay_is_stable(replace(evidence, cleaning=table))) == [Verdict.FAILS]


def test_sensitivity_to_delta_is_a_tenth(evidence):
    assert verdicts(runs.sensitive_to_delta(evidence)) == [Verdict.FAILS]
    table = set_at(evidence.representation, "ablations", "delta 10", upper_loss=2.0)
    assert verdicts(runs.sensitive_to_delta(replace(evidence, representation=table))) == [Verdict.HOLDS]


def test_the_dimensions_are_right_and_the_layers_are_not(evidence):
    assert verdicts(runs.dimensions(evidence)) == [Verdict.HOLDS, Verdict.FAILS]


# Effects


def history(label, values, stop="seconds", group="main"):
    """One run for each value: from 1 at second 0 to the value at second 10, on a line."""
    return pd.concat(
        pd.DataFrame({"cpu_seconds": [0.0, 10.0], "loss": [1.0, value]}).assign(
            group=group, label=label, seed=seed, stop=stop
        )
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


def test_a_defect_of_released_code_is_compared_at_the_last_shared_step(evidence):
    folder = RESULTS / "released" / "full" / "cleaning"
    now, then = (pd.read_csv(folder / f"{name}_0.csv") for name in ("all_upper_batches_from_training", "correct"))
    (line,) = effects.of_released("cleaning", "auc", "all upper batches from training")(evidence)
    step = min(now.step.max(), then.step.max())
    values = [f"{part[part.step == step].auc.item():.3f}" for part in (now, then)]
    assert f"{values[0]} instead of {values[1]}, after {step} outer steps" in line
    assert values[0] < values[1]


def test_schedules_are_shown_as_formulas():
    assert effects.setting("hyper-cleaning", "FMBO", "eta") == "eta = min(1, 100 (t + 1)^(-0.667))"
    assert effects.setting("hyper-representation", "FdeHBO", "alpha", "delta") == "alpha = 0.008, delta = 0.1"


def test_steps_without_momentum_are_counted(evidence):
    long = evidence.cleaning.assign(step=evidence.cleaning.step * 10)
    said = effects.without_momentum("FMBO", replace(evidence, cleaning=long))
    eta = experiments.paper_settings("hyper-cleaning", "FMBO")["eta"]
    off = sum(eta(t) >= 1 for t in range(6000))
    assert 0 < off < 6000
    assert said == f"FMBO: eta is 1, no momentum, in the first {off} of 6000 steps"


# The ledgers as a whole


def test_every_claim_has_a_number_or_a_reason(ledger):
    for passage, claims in ledger:
        assert claims, passage.quote
        for claim in claims:
            assert claim.text
            assert claim.measure
            assert (re.search(r"\d", claim.numbers) is not None) or claim.verdict is Verdict.UNTESTABLE, claim


def test_claims_that_can_be_decided_name_a_chapter_or_a_test(ledger):
    for passage, claims in ledger:
        if any(claim.verdict is not Verdict.UNTESTABLE for claim in claims):
            assert passage.chapters or passage.tests, passage.quote


def test_every_test_that_the_ledger_names_exists():
    named = {test for passage in sentences.PASSAGES for test in passage.tests}
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 20
    assert named - defined == set()


def test_no_passage_is_quoted_twice_and_all_sections_are_known(open_choices):
    quotes = [passage.quote for passage in sentences.PASSAGES]
    assert len(set(quotes)) == len(quotes)
    assert list(dict.fromkeys(passage.section for passage in sentences.PASSAGES)) == list(CLAIM_SECTIONS)
    assert list(dict.fromkeys(choice.section for choice in open_choices)) == list(CHOICE_SECTIONS)


def test_the_counts_at_the_top_are_those_of_the_rows(ledger, open_choices):
    different = {
        (claim.where, claim.text, claim.measure, claim.numbers, claim.verdict) for _, cs in ledger for claim in cs
    }
    expected = Counter(verdict for *_, verdict in different)
    assert tally(ledger) == {verdict: expected[verdict] for verdict in Verdict}
    top = render.claims_summary(ledger)
    assert top.startswith(f"{len(sentences.PASSAGES)} passages of the paper make {len(different)} different claims")
    for verdict in Verdict:
        assert f"[{verdict}]{{.verdict .verdict-{verdict.replace(' ', '-')}}} {expected[verdict]}\n" in top + "\n"
    measured_ones = sum(1 for choice in open_choices if choice.effect)
    assert f"not-measured}} {len(open_choices) - measured_ones}" in render.choices_summary(open_choices)
    assert 0 < measured_ones < len(open_choices)


def test_what_is_said_twice_is_counted_once(ledger):
    assert sum(tally(ledger).values()) < sum(len(claims) for _, claims in ledger)
    assert tally(ledger + ledger) == tally(ledger)


def test_every_choice_has_a_value_and_a_reason(open_choices):
    for choice in open_choices:
        assert choice.what
        assert choice.value
        assert choice.why
        assert all(re.search(r"\d|diverged", line) for line in choice.effect), choice
    assert len({(choice.section, choice.what) for choice in open_choices}) == len(open_choices)


def test_every_group_with_one_thing_changed_is_in_the_assumptions_ledger(open_choices):
    """A run that was made to measure a choice must be seen."""
    shown = "\n".join(line for choice in open_choices for line in choice.effect)
    seen = {("ablations", "as in the paper"), ("ablations", "no second-order term"), ("momentum", "main comparison"),
            ("pzobo", "released code, PyTorch 2")}  # fmt: skip
    for experiment in ("hyper-representation", "hyper-cleaning"):
        for one in experiments.sweep(experiment, "full"):
            if one.group in ("ablations", "pzobo", "momentum", "choices", "equal_steps"):
                assert (one.group, one.label) in seen or f"{one.label}: " in shown, one.name


def test_every_card_is_rendered_with_its_verdicts_and_links(ledger, open_choices):
    for passage, claims in ledger:
        card = render.passage_card(passage, claims)
        assert f"> {passage.quote}" in card
        assert card.count("{.verdict ") == len(claims)
        assert all(claim.numbers in card and claim.measure in card for claim in claims)
        assert all(f"`{test}`" in card for test in passage.tests)
    for choice in open_choices:
        card = render.choice_card(choice)
        assert choice.value in card
        assert all(f"- {line}" in card for line in choice.effect)
    links = {
        link
        for passage, claims in ledger
        for link in re.findall(r"\]\((\.\./chapters/[^)]+)\)", render.passage_card(passage, claims))
    }
    assert len(links) >= 8
    assert all((ROOT / "book" / link).exists() for link in links)


@pytest.mark.parametrize(
    ("page", "name", "known"), [("claims", "claims", CLAIM_SECTIONS), ("assumptions", "assumptions", CHOICE_SECTIONS)]
)
def test_the_pages_show_every_section_once_and_the_counts_first(page, name, known):
    text = (ROOT / "book" / f"{page}.md").read_text()
    assert re.findall(rf"```{{{name}-ledger}} (.+)", text) == list(known)
    assert text.index(f"{{{name}-summary}}") < text.index(f"{{{name}-ledger}}")


def test_the_claims_page_explains_every_verdict():
    text = (ROOT / "book" / "claims.md").read_text()
    assert all(render.badge(verdict) in text for verdict in Verdict)


def test_a_missing_run_is_an_error_with_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(evidence_module, "RESULTS", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"runs of hyper-representation are not stored.*reproduce"):
        complete("hyper-representation")


def test_the_decay_of_eta_is_the_same_for_all_and_the_largest_that_was_tried():
    """What the assumptions ledger says in words."""
    decays = {
        (one.group, one.solver, one.label): one.options["eta"]["c"]
        for one in experiments.sweep("hyper-cleaning", "full", ["main"])
        + experiments.sweep("hyper-cleaning", "full", ["tuning"])
        if "eta" in one.options
    }
    chosen = {solver: c for (group, solver, _), c in decays.items() if group == "main"}
    assert set(chosen) == {"FMBO", "SUSTAIN", "MRBO", "FSLA"}
    assert set(chosen.values()) == {max(decays.values())}
