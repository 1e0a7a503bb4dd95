"""What each rule of the page "If you write a bilevel comparison" changed here: before, after.

The "after" is read from stored runs, calibrations and experiment files when the book is built, and so is the "before"
where the same runs tell it; what only the first edition's runs tell stands in first_edition.toml.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bilevel_book import rates
from bilevel_book.checklist.coverage import coverage, words
from bilevel_book.experiments import load, names, sweep
from bilevel_book.experiments.tables import stored_runs
from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.ledger.claims import different, tally
from bilevel_book.ledger.counts import cost
from bilevel_book.paths import ROOT
from bilevel_book.protocol import itself
from bilevel_book.protocol.cells import RUNS, Word, cells, together
from bilevel_book.protocol.selection import LOSS, method_of, near_edges
from bilevel_book.protocol.sentences import TRACKS, cases, complete
from bilevel_book.protocol.tuning import best, expected_best, scores
from bilevel_book.protocol.verdict import MARGIN, Verdict

EXPERIMENTS = {CLEANING: "cleaning", REPRESENTATION: "LeNet"}
FIRST = tomllib.loads(Path(__file__).with_name("first_edition.toml").read_text())
SHOWN, TRIALS, SCATTER = "test_loss", (1, 4, 12, 24), 0.1


class Change(NamedTuple):
    """What was done or said here without the rule, and with it: as Markdown."""

    before: str
    after: str


# What is asked


def rules_first() -> Change:
    text = (ROOT / "experiments" / "protocol.md").read_text()
    sentences = len(re.findall(r"^\| [A-Z]\d", text, re.M))
    changes = len(re.findall(r"^- \*", text.split("## Changes")[1], re.M))
    return Change(
        "each claim had a rule of its own in the code, written with the runs at hand.",
        f"a page with a date: {sentences} rows of sentences with rivals and measure, what had been seen before, and "
        f"{changes} later changes, each with its date and its reason.",
    )


def one_sentence_one_verdict(ledger: Sequence[tuple[Any, Sequence[Any]]]) -> Change:
    """The first edition's ledger, and what today's would count without the rule and counts with it."""
    first, kept, counted = FIRST["ledger"], different(list(ledger)), tally(list(ledger))
    held = sum(claim.verdict == Verdict.HOLDS for claim in kept)
    apart = sum(bool(claim.apart) for claim in kept)
    return Change(
        f"everything different counted: {first['claims']} claims, of which {first['holds']} were said to hold, and "
        f"{first['late']} to hold late.",
        f"today's ledger shows {len(kept)} different verdicts, {held} of which say *holds*. But {apart} are about our "
        "own code, true by construction, questions of ours, or about settings that are not the paper's. "
        f"{sum(counted.values())} are counted, of which {counted[Verdict.HOLDS]} say *holds*.",
    )


# What is spent


def alike_written() -> Change:
    """Steps of LeNet in multiples of one of FdeHBO, with the first edition's code and with today's."""
    today = {name: load(REPRESENTATION).calibration["steps"][f"main.{name}"]["median"] for name in FIRST["step"]}

    def ratios(cost: dict[str, float]) -> str:
        others = (name for name in cost if name != "FdeHBO")
        return ", ".join(f"{name} {cost[name] / cost['FdeHBO']:.2f}" for name in others)

    return Change(
        "on LeNet FdeHBO shared its passes over a batch, and its rivals did not. In multiples of a step of FdeHBO a "
        f"step cost: {ratios(FIRST['step'])}.",
        f"every method shares what its formulas allow, and the same steps cost: {ratios(today)}.",
    )


def priced() -> Change:
    prices = {short: load(name).calibration["prices"] for name, short in EXPERIMENTS.items()}
    told = "; ".join(f"{short}: H v {price['Hv']:g}, J v {price['Jv']:g}" for short, price in prices.items())
    fmbo, control, price = cost("FMBO", 2)[-1], cost("alternating", 2)[-1].gradients, prices["cleaning"]
    plain = (fmbo.gradients + fmbo.Hv + fmbo.Jv) / control
    fair = (fmbo.gradients + price["Hv"] * fmbo.Hv + price["Jv"] * fmbo.Jv) / control
    return Change(
        f"a product counted as much as a gradient, so that on cleaning a step of FMBO counted {plain:g} times as "
        "much as one of the control.",
        f"products have measured prices, in gradients of g ({told}), and it counts {fair:.2f} times as much.",
    )


def steps_not_seconds() -> Change:
    told = [
        f"on {EXPERIMENTS[name]} a run of {row['seconds']} processor seconds took up to {row['wall']} seconds on the "
        f"wall, and bought {row['method']} {row['fewest_steps']} steps on one seed and {row['most_steps']} on another"
        for name, row in FIRST["clock"].items()
    ]
    return Change(
        f"the budget was time, on a machine with other work: {'; '.join(told)}.",
        "budgets are steps, computed from the median cost of a step, which was measured for all methods in turn. The "
        "same run on a busy machine has the same CSV, byte for byte.",
    )


# Who is tuned, and how


def tuned_alike() -> Change:
    first = {
        EXPERIMENTS[name]: [FIRST["trials"][name].get(label, 0) for label in load(name).tables["main"]]
        for name in EXPERIMENTS
    }
    told = "; ".join(
        f"{short}: {max(given)} settings for {sum(map(bool, given))} of {len(given)}" for short, given in first.items()
    )
    groups = ["pilot", "tuning"]
    runs = [(name, method_of(run.label)) for name in EXPERIMENTS for run in sweep(name, groups=groups)]
    now = sorted({runs.count(method) for method in runs})
    return Change(
        f"some methods were tuned ({told} methods), and the compared run of the control was not the tuned one.",
        f"{' or '.join(map(str, now))} trials for every method of both experiments, the control too: a pilot, then "
        "the search itself; finals on other seeds choose among the best.",
    )


def box_edges() -> Change:
    told = []
    for name, short in EXPERIMENTS.items():
        near = edges_of_pilot(name)
        sides = sum(map(len, near.values()))
        told.append(f"{short}: {sum(map(bool, near.values()))} of {len(near)} searches, {sides} settings")
    return Change(
        "boxes and grids were guesses, and nobody looked where the best point lay.",
        f"after the pilot the best trial lay in the outer tenth of a box in many of them ({'; '.join(told)}). Those "
        "edges were moved out, once, by one rule for all; where the method allows no more (eta <= 1), they stayed.",
    )


@cache
def edges_of_pilot(experiment: str) -> dict[str, dict[str, str]]:
    """For each searched method the settings of its best trial that are near an end of their box."""
    score, tables = scores(complete(experiment, "pilot"), LOSS), load(experiment).tables["boxes"]
    settings = {run.label: run.options for run in sweep(experiment, groups=["pilot"])}
    near = {}
    for label, own in score.groupby(score.index.map(method_of), sort=False):
        near[str(label)] = near_edges(tables[label].options, settings[best(own)])
    return near


@cache
def tuning_scores(metric: str) -> dict[str, pd.Series]:
    """For each method the scores of its trials on cleaning."""
    score = scores(complete(CLEANING, "tuning"), metric)
    return {str(label): own for label, own in score.groupby(score.index.map(method_of), sort=False)}


def not_what_is_plotted() -> Change:
    chosen, shown = tuning_scores(LOSS), tuning_scores(SHOWN)
    by_sight = {name: shown[name].min() for name in shown}
    by_rule = {name: shown[name][chosen[name].idxmin()] for name in shown}
    gains = {name: 1 - by_sight[name] / by_rule[name] for name in shown}
    other = [name for name, gain in gains.items() if gain > 0]
    return Change(
        "settings were chosen by the loss that was then plotted.",
        f"they are chosen on images that no figure shows. On cleaning the plotted test loss would have "
        f"chosen another trial for {len(other)} of {len(gains)} methods ({', '.join(other)}), and would have "
        f"flattered them by up to {100 * max(gains.values()):.1f} %.",
    )


@cache
def by_trials() -> pd.DataFrame:
    """The median test loss of the best of k trials on cleaning, chosen by the selection loss: index k, by method."""
    chosen, shown = tuning_scores(LOSS), tuning_scores(SHOWN)
    numbers = range(1, TRIALS[-1] + 1)
    return pd.DataFrame({name: expected_best(chosen[name], shown[name], numbers)["median"] for name in chosen})


def swaps(few: int, many: int) -> tuple[int, int]:
    """How many pairs of methods change their order between two numbers of trials, and how many pairs there are."""
    table = by_trials()
    pairs = list(combinations(table, 2))
    order = [[table.loc[k, a] < table.loc[k, b] for a, b in pairs] for k in (few, many)]
    return sum(x != y for x, y in zip(*order, strict=True)), len(pairs)


def leaders() -> dict[int, str]:
    return {k: str(by_trials().loc[k].idxmin()) for k in TRIALS}


def against_trials() -> Change:
    moved, pairs = swaps(4, TRIALS[-1])
    told = ", ".join(f"{name} at {k}" for k, name in leaders().items())
    return Change(
        "one number of trials, and one order.",
        f"of {pairs} pairs of methods {moved} change their order between 4 trials and {TRIALS[-1]}. The lowest is "
        f"{told}.",
    )


# What is decided


def few_seeds() -> Change:
    seeds = {short: len({run.seed for run in sweep(name, groups=["main"])}) for name, short in EXPERIMENTS.items()}
    now = ", ".join(f"{n} on {short}" for short, n in seeds.items())
    then = ", ".join(f"{FIRST['seeds'][name]} on {short}" for name, short in EXPERIMENTS.items())
    few, boot = (3, 5, 10), "percentile bootstrap"
    inside = ", ".join(f"{100 * coverage(n)[boot]:.0f} % with {n}" for n in few)
    student = min(coverage(n)["Student's t"] for n in few)
    return Change(
        f"means of few seeds ({then}), and their range. A bootstrap would have been no help: where it promises 95 %, "
        f"the truth lies inside in {inside} seeds.",
        f"{now}, the same data, start and stream of samples for all methods on a seed, and Student's t on the "
        "differences of logarithms, which keeps its promise with any of these numbers of seeds (at least "
        f"{100 * student:.0f} %).",
    )


def margin_and_undecided() -> Change:
    chance = {word: each[0] for word, each in words(pd.Series([1.0]).to_numpy(), 5, MARGIN, SCATTER).items()}
    wrong = chance[Verdict.HOLDS] + chance[Verdict.FAILS]
    return Change(
        "the lower mean won. Of two copies of one method one would always have been called better.",
        f"with five seeds that scatter by {100 * SCATTER:.0f} %, one of two copies is called better in "
        f"{100 * wrong:.1f} % of all cases, and {100 * chance[Verdict.UNDECIDED]:.0f} % are *undecided*: five such "
        "seeds are too few to say *alike*.",
    )


@cache
def words_of_cells(method: str, since: int = rates.SINCE) -> pd.Series:
    return cells(method, since).word


def negative_control() -> Change:
    """By the first edition's rule, on the cell that it looked at, and by the protocol's on all cells."""
    methods = ("FdeHBO", "F3SA", "F2SA")
    alone = rates.slopes(methods=methods).set_index("method")
    controls = rates.slopes(methods=[rates.CONTROLS[name] for name in methods]).set_index("method")
    held = [name for name in methods if alone.low[name] <= rates.CLAIMED[name]]
    same = [name for name in held if controls.low[rates.CONTROLS[name]] <= rates.CLAIMED[name]]
    told = []
    for name in methods:
        said = words_of_cells(name)
        nothing = int((said == Word.NOTHING).sum())
        told.append(f"{name}: *{together(said)}* (the control shows the rate too in {nothing} of {len(said)} cells)")
    return Change(
        f"one slope for each method, and the rates of {', '.join(held)} *hold*. By the same rule SOBA, with the same "
        f"steps as each, has the rate of {', '.join(same) or 'none'} too.",
        f"{'; '.join(told)}.",
    )


def other_rules() -> Change:
    """How many verdicts on sentences stay under most other rules, and how many on rates under the other window."""
    verdicts = [
        (case.verdict(track), 2 * stays > rules)
        for experiment in EXPERIMENTS
        for case in cases(experiment)
        for track in case.tracks
        for stays, rules in [case.stays(track)]
    ]
    open_ones = [stays for word, stays in verdicts if word == Verdict.UNDECIDED]
    others = [stays for word, stays in verdicts if word != Verdict.UNDECIDED]
    same = [name for name in RUNS if together(words_of_cells(name)) == together(words_of_cells(name, rates.EARLIER))]
    return Change(
        "one rule, one verdict.",
        f"of the {len(verdicts)} verdicts on sentences about the two figures, both tracks together, "
        f"{sum(open_ones) + sum(others)} stay under more than half of the other axes, margins, levels and track that "
        f"can be read: {sum(open_ones)} of {len(open_ones)} that are *undecided*, and {sum(others)} of {len(others)} "
        f"that are not. Of the verdicts on {len(RUNS)} rates, with slopes from T = {rates.SINCE:,}, {len(same)} stay "
        f"with slopes from T = {rates.EARLIER}.",
    )


def against_itself() -> Change:
    told = []
    for (experiment, short), (track, name) in product(EXPERIMENTS.items(), TRACKS.items()):
        found = itself.against_itself(experiment, track)
        end = found[found.horizon == "end"]
        said = (f"{row.measure} {row.low:.2f} to {row.high:.2f} (*{row.verdict}*)" for row in end.itertuples())
        told.append(f"{itself.FIRST[experiment][0]} on {short}, {name}, {end.n.max()} seeds: {', '.join(said)}")
    return Change(
        "the rules were never tried on two methods that are known to be the same.",
        f"both methods run against themselves. Intervals of the ratio at the end of the budget, and verdicts: "
        f"{'; '.join(told)}.",
    )


def inclusion() -> Change:
    chosen = tuning_scores(LOSS)
    whole, part = (chosen[name].min() for name in ("FMBO", "SOBA"))
    word = (
        "FMBO was not tuned enough, and where it loses to SOBA the pair is *undecided*"
        if whole > (1 + MARGIN) * part
        else "so far nothing speaks against its tuning"
    )
    return Change(
        "FMBO behind SOBA was a finding.",
        f"FMBO with eta = 1 and no ball *is* SOBA. After {len(chosen['FMBO'])} trials each its best selection loss is "
        f"{whole:.3f}, that of SOBA {part:.3f}: {word}.",
    )


def too_short() -> Change:
    cost, groups = load(CLEANING).calibration["steps"]["main.AID-FP"]["median"], load(CLEANING).sizes["full"]
    short, long, first = groups["main"].time, groups["long"].time, FIRST["clock"][CLEANING]
    return Change(
        f"a verdict on AID-FP from {first['seconds']} seconds, {first['AID-FP']} of its steps.",
        f"in the {short:g} seconds of the main comparison it takes {short / cost:.0f} steps, fewer than ten, which "
        f"gives no verdict on stability. Sentences about it are decided on {long:g} seconds, {long / cost:.0f} steps.",
    )


def all_stored() -> Change:
    runs = [run for name in names() for group in load(name).sizes["full"] for run in stored_runs(name, group).values()]
    facts = [run.facts for run in runs]
    stop = complete(CLEANING, "tuning").groupby("label").stop.first()
    return Change(
        "curves of the runs that were shown, and a stored run passed for valid whatever had become of its code.",
        f"{len(facts):,} runs are stored, {sum(fact['cpu_seconds'] for fact in facts) / 3600:.0f} hours of one core, "
        "with settings, versions, processor and commit; of the "
        f"{len(stop)} trials on cleaning {(stop == 'diverged').sum()} diverged and count as the worst. `verify` does "
        "stored runs again and compares the rows; every test run does so for a sample.",
    )


CHANGES = {
    each.__name__.replace("_", "-"): each
    for each in (
        rules_first, one_sentence_one_verdict, alike_written, priced, steps_not_seconds, tuned_alike, box_edges,
        not_what_is_plotted, against_trials, few_seeds, margin_and_undecided, negative_control, inclusion,
        against_itself, other_rules, too_short, all_stored,
    )
}  # fmt: skip
