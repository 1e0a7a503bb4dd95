"""Tuning alike: what the rule gives is what the file says, in the book's experiments and in a small one."""

import math
import tomllib
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import product
from shutil import copytree

import pandas as pd
import pytest

from bilevel_book.__main__ import main
from bilevel_book.experiments import load, reproduce, sweep
from bilevel_book.experiments.files import at_trial
from bilevel_book.experiments.plan import run_of
from bilevel_book.paths import RESULTS
from bilevel_book.verdicts.selection import Choice, as_toml, boxes_of, by_rule, choose, in_file, widened

TUNED = ("hyper-representation", "hyper-cleaning")
ENTRIES = ("widened", "finals", "tuned")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "entry"), list(product(TUNED, ENTRIES)))
def test_an_entry_of_the_file_is_what_the_rule_gives(name, entry):
    written = in_file(name)
    if entry not in written:
        pytest.skip(f"{name} has no {entry} yet: `python -m bilevel_book select {name}` says what it will be")
    assert written[entry] == by_rule(name, entry, RESULTS)


@pytest.mark.parametrize("name", TUNED)
def test_wherever_the_best_trial_lies_the_methods_take_the_wider_boxes(name):
    """For each label all boxes at their low ends, at their high ends, and the first at its low end, the rest high."""
    file = load(name)
    pilot = file.sizes["full"]["pilot"]
    for label, method in file.tables["boxes"].items():
        run, found = run_of(file, pilot, label), dict(boxes_of(method.options))
        assert list(found), label
        for first, rest in (("low", "low"), ("high", "high"), ("low", "high")):
            ends = iter([first] + [rest] * (len(found) - 1))
            wider, moves = widened(method.solver, method.options, filled(method.options, ends))
            assert len(moves) == len(found)
            for trial in range(24):
                replace(run, options=at_trial(method.options | wider, trial)).make_solver()


def filled(options, ends):
    """A point at the given ends of the boxes."""
    if not isinstance(options, dict):
        return options
    is_box = options.keys() == {"low", "high"}
    return options[next(ends)] if is_box else {key: filled(value, ends) for key, value in options.items()}


def box(low, high):
    return {"low": low, "high": high}


OPTIONS = {
    "alpha": box(0.003, 1.0),
    "beta": 0.5,
    "eta": {"c": box(1.0, 1000.0), "w": 1.0, "p": 0.5, "cap": 1.0},
    "Q": box(3, 10),
}


def point(alpha=0.05, c=30.0, Q=6):
    return {"alpha": alpha, "beta": 0.5, "eta": {"c": c, "w": 1.0, "p": 0.5, "cap": 1.0}, "Q": Q}


@pytest.mark.parametrize(
    ("at", "changes"),
    [
        ({}, {}),
        ({"alpha": 0.004}, {"alpha": box(0.0003, 1.0)}),
        ({"alpha": 0.9}, {"alpha": box(0.003, 10.0)}),
        ({"c": 900.0}, {"eta": {"c": box(1.0, 10_000.0), "w": 1.0, "p": 0.5, "cap": 1.0}}),
        ({"Q": 3}, {"Q": box(1, 10)}),
        ({"Q": 10, "c": 1.5}, {"Q": box(3, 20), "eta": OPTIONS["eta"] | {"c": box(0.1, 1e3)}}),
    ],
)
def test_an_edge_near_the_best_trial_is_moved_and_nothing_else(at, changes):
    before = str(OPTIONS)
    assert widened("SUSTAIN", OPTIONS, point(**at))[0] == changes
    assert str(OPTIONS) == before
    whole = changes.get("Q", box(1, 1))
    assert all(type(end) is int for end in whole.values())  # or its trials would no longer be whole


@pytest.mark.parametrize(
    ("solver", "options", "at", "changes"),
    [
        ("FdeHBO", {"eta": box(0.1, 1.0)}, {"eta": 0.95}, {}),
        ("FdeHBO", {"eta": box(0.1, 0.5)}, {"eta": 0.5}, {"eta": box(0.1, 1.0)}),
        ("FdeHBO", {"eta": box(0.1, 1.0)}, {"eta": 0.1}, {"eta": box(0.01, 1.0)}),
        ("SUSTAIN", {"eta_series": box(0.1, 1.0)}, {"eta_series": 1.0}, {"eta_series": box(0.1, 10.0)}),
        ("BSA", {"inner": box(1, 200)}, {"inner": 1}, {}),
        ("BSA", {"K": box(1, 10), "inner": 5}, {"K": 10, "inner": 5}, {"K": box(1, 20)}),
        ("reverse", {"K": box(1, 10), "inner": 15}, {"K": 10, "inner": 15}, {"K": box(1, 15)}),
        ("reverse", {"inner": box(10, 200), "K": 7}, {"inner": 10, "K": 7}, {"inner": box(7, 200)}),
        ("reverse", {"inner": box(10, 200), "K": box(1, 10)}, {"inner": 10, "K": 10}, {}),
        ("reverse", {"inner": box(12, 200), "K": box(1, 8)}, {"inner": 12, "K": 8}, {"inner": box(8, 200)}),
    ],
)
def test_no_edge_goes_where_the_method_does_not(solver, options, at, changes):
    wider, moves = widened(solver, options, at)
    assert wider == changes
    stuck = sum("which the method allows no further" in move for move in moves)
    assert stuck == len(moves) - len(changes)


# From the first boxes to tuned settings, on the quadratic problem

FILE = """
problem = "Quadratic"
options = { noise = 1.0, seed = 0 }

[sizes.full]
pilot = { methods = "boxes", trials = 8, steps = 16, seeds = [100], every = 2 }
GROUPS
[main.SOBA]
alpha = 0.01

[boxes.SOBA] # so small that the largest is best
like = "SOBA"
alpha = { low = 1e-5, high = 1e-4 }

[boxes."SOBA, loud"] # so large that noise decides
like = "SOBA"
alpha = { low = 0.1, high = 0.5 }

[boxes.FMBO]
alpha = { c = { low = 1e-5, high = 1e-4 }, w = 1.0, p = 0.5 }
eta = { low = 0.1, high = 1.0 }
"""
TUNING = 'tuning = { methods = "widened", trials = 8, steps = 24, seeds = [100], every = 3 }\n'
FINALS = 'finals = { methods = "widened", trials = 8, steps = 24, seeds = [102, 103], every = 3, CHOSEN }\n'
LABELS = ("SOBA", "SOBA, loud", "FMBO")
METRIC = "objective"


def printed(path, results):
    """What the command prints, by entry: the first line of each names it."""
    out = StringIO()
    with redirect_stdout(out):
        assert main(["select", str(path), "--results", str(results), "--metric", METRIC]) == 0
    sections = out.getvalue().removeprefix("# ").split("\n# ")
    return {section.split(",")[0]: section.partition("\n")[2] for section in sections}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small experiment, run and written further stage by stage with the very text that the command prints."""
    folder = tmp_path_factory.mktemp("small")
    path, results = folder / "small.toml", folder / "results"

    def stage(group, groups="", tables=""):
        path.write_text(FILE.replace("GROUPS", groups) + tables)
        reproduce(sweep(path, "full", [group]), results / "small" / "full", progress=False)
        return printed(path, results)

    wide = stage("pilot")["widened"]
    groups = TUNING + FINALS.replace("CHOSEN", stage("tuning", TUNING, wide)["finals"].strip())
    tuned = stage("finals", groups, wide)["tuned"]
    path.write_text(FILE.replace("GROUPS", groups) + wide + tuned)
    return path, results


def ends(small, group):
    """The score of each run, read from its file: the median of the last quarter of its rows, the start among them."""
    path, results = small
    runs = sweep(path, "full", [group])
    found = {}
    for run in runs:
        loss = pd.read_csv(results / "small" / "full" / f"{run.name}.csv")[METRIC]
        found[run.label, run.seed] = loss.iloc[-(len(loss) // 4) :].median()
    return found


def ranked(score, label):
    """The trials of a label, best first."""
    return sorted((trial for trial in score if trial.startswith(f"{label}, trial ")), key=score.get)


@pytest.mark.slow
def test_the_file_that_the_command_wrote_is_what_the_rule_gives(small):
    path, results = small
    assert in_file(path).keys() == set(ENTRIES)
    for entry in ENTRIES:
        assert in_file(path)[entry] == by_rule(path, entry, results, METRIC)


@pytest.mark.slow
def test_the_boxes_that_were_too_small_are_wider(small):
    path, _ = small
    score = {trial: end for (trial, _), end in ends(small, "pilot").items()}
    options = {run.label: run.options for run in sweep(path, "full", ["pilot"])}
    best = {label: options[ranked(score, label)[0]] for label in LABELS}
    assert best["SOBA"]["alpha"] > 10**-4.1  # in the outer tenth of its box
    assert best["FMBO"]["alpha"]["c"] > 10**-4.1
    assert 10**-0.9 < best["FMBO"]["eta"] < 10**-0.1
    written = in_file(path)["widened"]
    assert written["SOBA"] == {"like": "boxes.SOBA", "alpha": box(1e-5, 1e-3)}
    assert written["FMBO"] == {"like": "boxes.FMBO", "alpha": {"c": box(1e-5, 1e-3), "w": 1.0, "p": 0.5}}


@pytest.mark.slow
def test_the_finals_have_the_best_four_of_each_and_the_best_of_three_seeds_is_tuned(small):
    path, _ = small
    score, finals = {trial: end for (trial, _), end in ends(small, "tuning").items()}, ends(small, "finals")
    firsts, winners = [ranked(score, label)[0] for label in LABELS], []
    for label in LABELS:
        four = ranked(score, label)[:4]
        assert [trial for trial in in_file(path)["finals"] if trial.startswith(f"{label}, trial")] == four
        middle = {t: sorted((score[t], finals[t, 102], finals[t, 103]))[1] for t in four}
        winners.append(min(four, key=middle.get))
        number = int(winners[-1].split()[-1])
        assert in_file(path)["tuned"][label] == {"like": f"widened.{label}", "trial": number}
        (run,) = sweep(path, "full", ["tuning"], winners[-1:])
        assert load(path).tables["tuned"][label].options == run.options
    assert winners != firsts  # else the finals would show nothing here


@pytest.mark.slow
def test_an_entry_that_was_changed_is_seen(small, tmp_path):
    path, results = small
    text, changed = path.read_text(), tmp_path / "small.toml"
    number = in_file(path)["tuned"]["FMBO"]["trial"]
    for entry, old, new in (
        ("tuned", f'"widened.FMBO"\ntrial = {number}', f'"widened.FMBO"\ntrial = {number + 1}'),
        ("finals", f'"{in_file(path)["finals"][0]}"', '"SOBA, trial 99"'),
        ("widened", "alpha = { low = 1e-05, high = 0.001 }", "alpha = { low = 1e-05, high = 0.01 }"),
    ):
        assert text.count(old) == 1
        changed.write_text(text.replace(old, new))
        assert in_file(changed)[entry] != by_rule(changed, entry, results, METRIC)
    with pytest.raises(ValueError, match=r"finals cannot be decided: 8 of the 24 runs of tuning are not stored"):
        by_rule(changed, "finals", results, METRIC)  # which were done in other boxes


@pytest.mark.slow
def test_nothing_is_decided_before_all_runs_are_stored(small, tmp_path, capsys):
    path, results = small
    given = [str(path), "--results", str(tmp_path)]
    assert main(["select", *given]) == 0
    told = capsys.readouterr().out
    command = f"python -m bilevel_book reproduce {path} --size full --group pilot --results {tmp_path}"
    assert told == f"# widened, by pilot: 24 of the 24 runs of pilot are not stored: run `{command}` first\n"
    copytree(results, tmp_path / "results")
    next((tmp_path / "results" / "small" / "full" / "finals").glob("*.csv")).unlink()
    with pytest.raises(ValueError, match=r"tuned cannot be decided: 1 of the 24 runs of finals are not stored"):
        choose(path, "tuned", tmp_path / "results", METRIC)
    assert choose(path, "finals", tmp_path / "results", METRIC)  # those of the tuning are all there
    (tmp_path / "bare.toml").write_text(FILE.replace("GROUPS", ""))
    with pytest.raises(ValueError, match=r"finals cannot be decided: bare has no group tuning of size full"):
        choose(tmp_path / "bare.toml", "finals", results, METRIC)


@pytest.mark.slow
def test_a_method_whose_trials_all_diverge_is_named(tmp_path):
    text = FILE.replace("GROUPS", "").replace("low = 1e-5, high = 1e-4", "low = 1e100, high = 1e101")
    (tmp_path / "wild.toml").write_text(text)
    reproduce(sweep(tmp_path / "wild.toml", "full"), tmp_path / "wild" / "full", progress=False)
    with pytest.raises(ValueError, match=r"pilot of SOBA: all 8 trials diverged, so none is best: change the box"):
        choose(tmp_path / "wild.toml", "widened", tmp_path, METRIC)


def test_what_is_printed_is_read_back_as_it_was():
    options = {
        "a": {"low": 1e-5, "high": 10_000.0},
        "n": {"low": 1, "high": 2},
        "r": math.inf,
        "on": True,
        "s": 'a "b"',
    }
    text = as_toml("widened", {"A-1": Choice(options, "why"), "B, trial": Choice({"like": "boxes.B, trial"}, "x")})
    assert tomllib.loads(text) == {"widened": {"A-1": options, "B, trial": {"like": "boxes.B, trial"}}}
