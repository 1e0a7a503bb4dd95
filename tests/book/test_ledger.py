"""The ledgers as a whole: nothing is left without a number or a reason, what they name exists, the pages show it."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from bilevel_book import experiments, paths
from bilevel_book.ledger import CHOICE_SECTIONS, CLAIM_SECTIONS, PASSAGES, judged, render, taken, tally
from bilevel_book.ledger import choices as choices_ledger
from bilevel_book.ledger import claims as claims_ledger
from bilevel_book.ledger import evidence as evidence_module
from bilevel_book.ledger.claim import Verdict
from bilevel_book.ledger.registry import CONSTRUCTION, OWN_CODE, OWN_QUESTION, TUNED, judge
from bilevel_book.stored import SIZE

BOOK = paths.ROOT / "book"


@pytest.fixture(scope="module")
def ledger(evidence):
    return judged(evidence)


@pytest.fixture(scope="module")
def choices(evidence):
    return taken(evidence)


def test_every_claim_has_a_number_or_a_reason(ledger):
    for passage, claims in ledger:
        assert claims, passage.id
        for claim in claims:
            assert claim.text
            assert claim.measure
            assert (re.search(r"\d", claim.numbers) is not None) or claim.verdict is Verdict.UNTESTABLE, claim


def test_no_passage_is_quoted_twice_and_no_section_is_empty(choices):
    quotes = [passage.quote for passage in PASSAGES]
    assert len(set(quotes)) == len(quotes)
    assert tuple(dict.fromkeys(passage.section for passage in PASSAGES)) == CLAIM_SECTIONS
    assert tuple(dict.fromkeys(choice.section for choice in choices)) == CHOICE_SECTIONS


def exponents(quote):
    """samples | batch | iterations | loops of a row of Table 1: the exponents of 1 / epsilon, and the loops."""
    *orders, loops = quote.split(" | ")[1:]
    found = [re.search(r"\\epsilon\^\{-([\d.]+)\}", order) for order in orders]
    return [float(each.group(1)) if each else 0 for each in found], int(loops)


@pytest.mark.checks("introduction:pzobo-s-samples")
def test_the_table_as_quoted_agrees_with_itself_and_with_what_its_judges_are_told():
    rows = [passage for passage in PASSAGES if passage.section == "Table 1"]
    assert len(rows) == 4
    for row in rows:
        (samples, batch, iterations), loops = exponents(row.quote)
        assert samples == iterations + batch
        told = {call.function.__name__: call.options for call, _ in row.judges}
        assert told["has_rate"]["exponent"] == iterations
        assert told.get("batch_of_order", {"exponent": 0})["exponent"] == batch
        assert told["loops"]["count"] == loops
    (introduction,) = (passage for passage in PASSAGES if passage.id == "introduction:pzobo-s-samples")
    ((call, _),) = introduction.judges
    (_, batch, iterations), _ = exponents(rows[0].quote)
    assert call.options["method"] in rows[0].quote
    assert (call.options["iterations"], call.options["batch"]) == (iterations, batch)
    assert rf"\epsilon^{{-{call.options['said']}}}" in introduction.quote


def test_a_rate_that_is_judged_stands_in_the_quotation():
    for passage in PASSAGES:
        for call, _ in passage.judges:
            if call.function.__name__ == "has_rate":
                e = call.options["exponent"]
                assert rf"\epsilon^{{-{e:g}}}" in passage.quote or (e == 1.5 and "T^{2/3}" in passage.quote), passage.id


def test_the_counts_at_the_top_are_those_of_the_rows(ledger, choices):
    different = {
        (claim.text, claim.measure, claim.numbers, claim.verdict, claim.apart)
        for _, claims in ledger
        for claim in claims
    }
    expected = Counter(verdict for *_, verdict, apart in different if not apart)
    assert tally(ledger) == {verdict: expected[verdict] for verdict in Verdict}
    top, counted = render.claims_summary(ledger), sum(expected.values())
    assert top.startswith(f"{len(PASSAGES)} passages of the paper make {counted} different claims")
    assert f"[{len(different) - counted} more](#claim-not-counted)" in top
    for verdict in expected:
        linked = f"[{expected[verdict]}](#claim-{verdict.replace(' ', '-')})"
        assert f"[{verdict}]{{.verdict .verdict-{verdict.replace(' ', '-')}}} {linked}\n" in top + "\n"
    measured_ones = sum(1 for choice in choices if choice.effect)
    assert f"not-measured}} [{len(choices) - measured_ones}](#choice-not-measured)" in render.choices_summary(choices)
    assert 0 < measured_ones < len(choices)


@pytest.mark.slow
def test_every_claim_stands_once_under_its_verdict_with_a_link_to_itself(ledger):
    listed = render.claims_by_verdict(ledger)
    cards = "\n".join(render.passage_card(*row) for row in ledger)
    for verdict in Verdict:
        part = listed.partition(f"(claim-{verdict.replace(' ', '-')})=")[2].partition("\n\n(")[0]
        assert part.count("\n- [") == tally(ledger)[verdict]
    counted, _, apart = listed.partition("(claim-not-counted)=")
    assert apart.count("\n- [") == len(
        re.findall(rf", ({'|'.join((OWN_CODE, CONSTRUCTION, OWN_QUESTION, TUNED))})", apart)
    )
    links = re.findall(r"^- \[(.+)\]\(#(claim-[a-z0-9-]+)\)", listed, re.M)
    assert len({link for _, link in links}) == len(links) > sum(tally(ledger).values()) == counted.count("\n- [")
    for text, link in links:
        assert cards.partition(f"({link})=\n")[2].partition("} ")[2].startswith(text)
    assert listed.index(f"[{Verdict.FAILS}]") < listed.index(f"[{Verdict.HOLDS}]")


def test_every_list_passage_and_claim_has_an_anchor_that_nothing_else_on_the_page_has(ledger):
    page = "\n\n".join([render.claims_by_verdict(ledger), *(render.passage_card(*row) for row in ledger)])
    anchors = re.findall(r"^\((.+)\)=$", page, re.M)
    assert len(set(anchors)) == len(anchors)
    assert {f"claim-{passage.id.replace(':', '-')}" for passage in PASSAGES} < set(anchors)  # others link there
    assert {"claim-experiments-figure-1-f3", "claim-experiments-figure-1-f3-tuned-alike"} < set(anchors)
    lists = len(re.findall(r"^\(", render.claims_by_verdict(ledger), re.M))
    assert len(anchors) == lists + len(PASSAGES) + sum(len(claims) for _, claims in ledger)


def test_an_anchor_stays_when_other_claims_of_its_passage_come_or_go():
    for passage in PASSAGES:
        for i, name in enumerate(passage.names):
            assert replace(passage, judges=passage.judges[i : i + 1]).names == (name,)
            assert replace(passage, judges=passage.judges[i::-1]).names[0] == name


def test_what_is_said_twice_is_counted_once(ledger):
    assert sum(tally(ledger).values()) < sum(len(claims) for _, claims in ledger)
    assert tally(ledger + ledger) == tally(ledger)


def test_every_choice_has_a_value_and_a_reason(choices):
    for choice in choices:
        assert choice.what
        assert choice.value
        assert "{" not in choice.value
        assert choice.why
        assert all(re.search(r"\d|diverged", line) for line in choice.effect), choice


def test_every_group_with_one_thing_changed_is_in_the_assumptions_ledger(choices):
    """A run that was made to measure a choice must be seen."""
    shown = "\n".join(line for choice in choices for line in choice.effect)
    seen = {("ablations", "as in the paper"), ("ablations", "no second-order term"), ("momentum", "main comparison"),
            ("momentum", "eta 0.9, as in the paper")}  # fmt: skip
    for experiment in ("hyper-representation", "hyper-cleaning"):
        for run in experiments.sweep(experiment, SIZE):
            if run.group in ("ablations", "rivals", "momentum", "choices", "equal_steps"):
                assert (run.group, run.label) in seen or f"{run.label}: " in shown, run.name


def test_every_card_is_rendered_with_its_verdicts_and_links(ledger, choices):
    for passage, claims in ledger:
        card = render.passage_card(passage, claims)
        assert f"> {passage.quote}" in card
        assert card.count("{.verdict ") == len(claims)
        assert all(claim.numbers in card and claim.measure in card for claim in claims)
        assert all(f"`{test}`" in card for test in passage.tests)
        links = re.findall(r"\]\((\.\./chapters/[^)]+)\)", card)
        assert len(links) == len(passage.chapters)
        assert all((BOOK / link).exists() for link in links)
    for choice in choices:
        card = render.choice_card(choice)
        assert choice.value in card
        assert all(f"- {line}" in card for line in choice.effect)


def test_a_place_is_shown_only_where_it_is_not_that_of_the_passage(ledger):
    (passage, claims), *_ = (row for row in ledger if row[0].id == "experiments:figure-2")
    assert {claim.where for claim in claims} > {"Section 4.2", "Section 4.2, Figure 2 (b), at equal steps"}
    card = render.passage_card(passage, claims)
    assert all(f"{claim.text} ({claim.where})" in card for claim in claims)
    (passage, claims), *_ = (row for row in ledger if row[0].id == "experiments:figure-1")
    assert render.passage_card(passage, claims).count(passage.where) == 1


@pytest.mark.parametrize(
    ("page", "name", "known"), [("claims", "claims", CLAIM_SECTIONS), ("assumptions", "assumptions", CHOICE_SECTIONS)]
)
def test_the_pages_show_every_section_once_and_the_counts_first(page, name, known):
    text = (BOOK / f"{page}.md").read_text()
    assert tuple(re.findall(rf"```{{{name}-ledger}} (.+)", text)) == known
    assert text.index(f"{{{name}-summary}}") < text.index(f"{{{name}-ledger}}")


def test_the_claims_page_explains_every_verdict():
    text = (BOOK / "claims.md").read_text()
    assert all(render.badge(verdict) in text for verdict in Verdict)


def test_a_missing_run_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"runs of hyper-representation, pilot, are not stored.*reproduce"):
        evidence_module.runs_of("hyper-representation", tmp_path)


def test_a_chapter_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="0 notebooks in chapters are numbered 99"):
        render.chapter(99)


# Mistakes in the files


def spoilt(ledger, tmp_path, old, new):
    """A copy of a ledger's file in which the first `old` is `new`."""
    text = ledger.FILE.read_text()
    assert old in text
    path = tmp_path / ledger.FILE.name
    path.write_text(text.replace(old, new, 1))
    return path


FIRST = 'id = "abstract:single-loop"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"single_loop", ', '"singel_loop", ',
         "claims.toml, abstract:single-loop, judges: no judge 'singel_loop'; there are .*single_loop"),
        ('judges = ["first_order_only"]', 'judges = ["in_the_ball"]',
         "claims.toml: no entry asks for the judge 'first_order_only'"),
        ('exponent = 1.5 }, "few', 'exponents = 1.5 }, "few',
         "claims.toml, abstract:rate, judges: judge 'has_rate': .*exponent"),
        ('"single_loop", ', "7, ", "claims.toml, abstract:single-loop, judges: no judge 7; there are"),
        (FIRST, 'id = abstract:single-loop', "claims.toml: Invalid value"),
        (FIRST, f'{FIRST}\nweer = "Abstract"', "claims.toml, abstract:single-loop, weer: no such key; there are id"),
        (f'{FIRST}\nsection = "Abstract"', FIRST, "claims.toml, abstract:single-loop, section: it is missing"),
        (f'{FIRST}\nsection = "Abstract"', f'{FIRST}\nsection = "Abstrakt"',
         "claims.toml, abstract:single-loop, section: no section 'Abstrakt'; there are Abstract, Introduction"),
        (f"{FIRST}\n", "", "claims.toml, passage 1, id: it is missing"),
        (FIRST, 'id = "abstract:rate"', "claims.toml, abstract:rate, id: 2 entries have it"),
        (FIRST, 'id = "Single loop"', "claims.toml, Single loop, id: must be two words"),
        ("chapters = [7]", "chapters = 7", "claims.toml, abstract:single-loop, chapters: must be a list, got 7"),
        ("sections = [", "parts = [", "claims.toml has parts, passage at its top; it must have sections and passage"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_claims_is_named_with_its_place(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        claims_ledger.load(spoilt(claims_ledger, tmp_path, old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{norm_of_first_v}", "{norm_of_v}", "choices.toml, the first v, value: no value 'norm_of_v'; there are batch"),
        ("{default: FMBO, independent}", "{default: FMBO}",
         "choices.toml, the samples of the three estimators, value: value 'default': missing .*'name'"),
        ("(norm {norm_of_first_v})", "", "choices.toml: no entry asks for the value 'norm_of_first_v'"),
        ('effects = ["of_held_out"]', 'effects = ["of_the_draws"]',
         "choices.toml: no entry asks for the effect 'of_held_out'"),
        ('effect = "of_fdehbo", labels', 'effect = "of_fdehbo", label',
         "choices.toml, the samples of the three estimators, effects: effect 'of_fdehbo': .*label"),
        ('what = "the first v"', 'what = "the first w"', "choices.toml, the first w, what: 2 entries have it"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_choices_is_named_with_its_place(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        choices_ledger.load(spoilt(choices_ledger, tmp_path, old, new))


def test_two_judges_of_one_name_are_an_error():
    def single_loop():
        pass

    known = judge["single_loop"]
    with pytest.raises(ValueError, match=r"two functions for the judge 'single_loop', in bilevel_book.ledger.counts"):
        judge(single_loop)
    assert judge["single_loop"] is known


def test_a_line_break_in_a_quotation_is_a_blank(tmp_path):
    broken = spoilt(claims_ledger, tmp_path, '"FdeHBO is the first"', '"""\nFdeHBO is\nthe  first"""')
    _, passages = claims_ledger.load(broken)
    (claim,) = next(passage for passage in passages if passage.id == "abstract:first").claims()
    assert claim.text == "FdeHBO is the  first"
