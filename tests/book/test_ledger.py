"""The ledgers as a whole: nothing is left without a number or a reason, what they name exists, the pages show it."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from bilevel_book import experiments, paths
from bilevel_book.ledger import PASSAGES, claims, judged, render, taken, tally
from bilevel_book.ledger.claim import Printed
from bilevel_book.verdicts import Verdict

BOOK = paths.ROOT / "book"


@pytest.fixture(scope="module")
def ledger(evidence):
    return judged(evidence)


@pytest.fixture(scope="module")
def choices(evidence):
    return taken(evidence)


def test_every_claim_has_a_number_or_a_reason(ledger):
    for passage, found in ledger:
        assert found, passage.id
        for claim in found:
            assert claim.text
            assert claim.measure
            assert re.search(r"\d", claim.numbers) or claim.verdict is Verdict.UNTESTABLE, claim


def test_every_choice_has_a_value_and_a_reason(choices):
    for choice in choices:
        assert "{" not in choice.value
        assert choice.value
        assert choice.why
        assert all(re.search(r"\d|diverged", line) for line in choice.effects), choice


def exponents(quote):
    """samples | batch | iterations | loops of a row of Table 1: the exponents of 1 / epsilon, and the loops."""
    *orders, loops = quote.split(" | ")[1:]
    found = [re.search(r"\\epsilon\^\{-([\d.]+)\}", order) for order in orders]
    return [float(each.group(1)) if each else 0 for each in found], int(loops)


@pytest.mark.checks("introduction:pzobo-s-samples")
def test_the_quoted_table_agrees_with_itself_and_with_its_judges():
    rows = [passage for passage in PASSAGES if passage.section == "Table 1"]
    assert len(rows) == 4
    for row in rows:
        (samples, batch, iterations), loops = exponents(row.quote)
        assert samples == iterations + batch
        told = {judge.function.__name__: judge.options for judge in row.judges}
        assert told["has_rate"]["exponent"] == iterations
        assert told.get("batch_of_order", {"exponent": 0})["exponent"] == batch
        assert told["loops"]["count"] == loops
    (introduction,) = (passage for passage in PASSAGES if passage.id == "introduction:pzobo-s-samples")
    (judge,) = introduction.judges
    (_, batch, iterations), _ = exponents(rows[0].quote)
    assert (judge.options["iterations"], judge.options["batch"]) == (iterations, batch)
    assert rf"\epsilon^{{-{judge.options['said']}}}" in introduction.quote


def test_summaries_count_each_different_claim_once(ledger, choices):
    different = {replace(claim, where="") for _, found in ledger for claim in found}
    expected = Counter(claim.verdict for claim in different if not claim.apart)
    assert tally(ledger) == tally(ledger + ledger) == {verdict: expected[verdict] for verdict in (*Verdict, *Printed)}
    top, counted = render.claims_summary(ledger), sum(expected.values())
    assert top.startswith(f"{len(PASSAGES)} passages of the paper make {counted} different claims")
    assert f"{len(different) - counted} more are shown" in top
    measured = sum(1 for choice in choices if choice.effects)
    assert f"not-measured}} [{len(choices) - measured}](#choice-not-measured)" in render.choices_summary(choices)
    assert 0 < measured < len(choices)


@pytest.mark.slow
def test_every_claim_is_listed_once_with_a_link_to_its_card(ledger):
    listed, table = render.claims_by_verdict(ledger), render.figures_table(ledger)
    cards = "\n".join(render.passage_card(*row) for row in ledger)
    links = re.findall(r"^- \[(.+)\]\(#(claim-[a-z0-9-]+)\)", listed, re.M)
    links += [pair[::-1] for pair in re.findall(r"^\| \[.+?\]\(#(claim-[a-z0-9-]+)\) \| (.+?) \|", table, re.M)]
    tuned = sum(claim.apart == "the same sentence, tuned alike" for claim in claims.different(ledger))
    assert len(links) == len(set(links)) == len(claims.different(ledger)) - tuned
    for text, link in links:
        assert cards.partition(f"({link})=\n")[2].partition("} ")[2].startswith(text)
    anchors = re.findall(r"^\((.+)\)=$", f"{listed}\n\n{cards}", re.M)
    assert len(set(anchors)) == len(anchors)
    assert {"claim-experiments-figure-1-f3", "claim-experiments-figure-1-f3-tuned-alike"} < set(anchors)


def test_programs_get_each_different_claim_with_its_runs_and_command(ledger):
    rows = json.loads(render.as_json(ledger + ledger))
    assert [row["claim"] for row in rows] == [claim.text for claim in claims.different(ledger)]
    by_card = {row["card"].partition("figure-2-")[2]: row for row in rows}
    assert by_card["c3"]["command"] == "python -m bilevel_book verdicts hyper-cleaning"
    assert len({by_card[name]["runs"] for name in ("c3", "c3-tuned-alike")} - {""}) == 2


def test_every_group_with_one_thing_changed_is_in_the_assumptions_ledger(choices):
    """A run that was made to measure a choice must be seen."""
    shown = "\n".join(line for choice in choices for line in choice.effects)
    seen = {("ablations", "as in the paper"), ("ablations", "no second-order term"), ("momentum", "main comparison"),
            ("momentum", "eta 0.9, as in the paper")}  # fmt: skip
    for experiment in ("hyper-representation", "hyper-cleaning"):
        for run in experiments.sweep(experiment):
            if run.group in ("ablations", "rivals", "momentum", "choices"):
                assert (run.group, run.label) in seen or f"{run.label}: " in shown, run.name


def test_the_pages_show_every_section_once(choices):
    sections = {"claims": [passage.section for passage in PASSAGES], "assumptions": [c.section for c in choices]}
    for page, known in sections.items():
        text = (BOOK / f"{page}.md").read_text()
        assert re.findall(rf"```{{{page}-ledger}} (.+)", text) == list(dict.fromkeys(known))
    assert all(render.badge(verdict) in (BOOK / "claims.md").read_text() for verdict in (*Verdict, *Printed))


def test_an_unknown_judge_raises(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text('[[Abstract]]\nid = "a:b"\nwhere = "Abstract"\nquote = "q"\njudges = ["singel_loop"]')
    with pytest.raises(ValueError, match="a:b: there is no judge 'singel_loop'"):
        claims.load(path)
