"""Curves, scores and verdicts from tables that are written by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgba

from bilevel_book import stored, verdicts
from bilevel_book.__main__ import JUDGED, main
from bilevel_book.curves import at_marks, band, first_below, largest_rise
from bilevel_book.figures.cleaning import rejected
from bilevel_book.figures.reproduction import race, standings
from bilevel_book.paths import RESULTS
from bilevel_book.style import RED
from bilevel_book.verdicts import Verdict, ahead, worst
from bilevel_core import experiments
from bilevel_core.experiments.report import last_quarter_median, tuning_scores


def history(label, seed, seconds, losses, solver="SOBA", diverged_at=None):
    n = len(losses)
    stop = "seconds" if diverged_at is None else "diverged"
    return pd.DataFrame(
        {
            "step": range(n), "cpu_seconds": seconds, "gradients": [10 * t for t in range(n)], "upper_loss": losses,
            "label": label, "solver": solver, "seed": seed, "stop": stop,
            "diverged_at": np.nan if diverged_at is None else diverged_at,
        }
    )  # fmt: skip


@pytest.fixture
def table():
    return pd.concat(
        [
            history("A", 0, [0, 10, 20, 30], [8.0, 4.0, 2.0, 1.0]),
            history("A", 1, [0, 12, 24, 36], [8.0, 6.0, 5.0, 3.0]),
            history("B", 0, [0, 5, 10, 30], [8.0, 3.0, 3.5, 2.5]),
            history("B", 1, [0, 5, 10, 30], [8.0, 3.0, 2.0, 2.5]),
            history("C", 0, [0, 15, 30], [8.0, 1.0, np.nan], diverged_at=2),
        ],
        ignore_index=True,
    )


def test_between_two_rows_a_curve_is_straight(table):
    values = at_marks(table, "cpu_seconds", "upper_loss", [0, 6, 15, 30])
    assert values.loc[("A", 0)].tolist() == [8.0, 5.6, 3.0, 1.0]
    assert values.loc[("A", 1)].tolist() == [8.0, 7.0, 5.75, 4.0]
    assert values.loc[("C", 0)].tolist()[2] == 1.0
    assert np.isnan(values.loc[("C", 0), 30])  # it had diverged
    assert np.isnan(at_marks(table, "cpu_seconds", "upper_loss", [32]).loc[("A", 0), 32])  # it had ended


def test_a_band_is_mean_and_range_of_the_seeds(table):
    bands = band(at_marks(table, "cpu_seconds", "upper_loss", [15, 30]))
    assert bands.loc["A", "mean"].tolist() == [4.375, 2.5]
    assert bands.loc["A", "min"].tolist() == [3.0, 1.0]
    assert bands.loc["A", "max"].tolist() == [5.75, 4.0]
    both = pd.concat([table, history("C", 1, [0, 15, 30], [8.0, 2.0, 1.5])])
    bands = band(at_marks(both, "cpu_seconds", "upper_loss", [15, 30]))
    assert bands.loc["C", ("mean", 15)] == 1.5
    assert np.isnan(bands.loc["C", ("mean", 30)])  # one of the two diverged: the survivor's value is no mean


def test_first_below_and_largest_rise(table):
    reached = first_below(table, "cpu_seconds", "upper_loss", 2.0)
    assert reached["A"].tolist() == [20, np.inf]
    rises = largest_rise(table, "upper_loss")
    assert rises["A"].tolist() == [0.0, 0.0]
    assert rises["B"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("first", "second", "marks", "verdict"),
    [
        ("B", "A", [10, 25], Verdict.HOLDS),
        ("A", "B", [10, 25], Verdict.FAILS),
        ("B", "A", [10, 30], Verdict.FAILS),  # 2.5 each
        ("A", "B", [10, 29, 30], Verdict.FAILS),
        ("C", "A", [15, 30], Verdict.FAILS),  # it was ahead, and diverged
        ("A", "C", [15, 30], Verdict.LATE),
    ],
)
def test_verdicts(table, first, second, marks, verdict):
    assert ahead(table, first, second, "upper_loss", marks) == verdict


def test_a_claim_of_several_parts_is_as_good_as_the_worst():
    assert worst([Verdict.HOLDS, Verdict.HOLDS]) == Verdict.HOLDS
    assert worst([Verdict.HOLDS, Verdict.LATE]) == Verdict.LATE
    assert worst([Verdict.FAILS, Verdict.LATE, Verdict.HOLDS]) == Verdict.FAILS


def test_a_divergence_is_drawn(table):
    panel = race(table, ["upper_loss"]).axes[0]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(30, 1.0)]
    assert panel.get_yscale() == "log"
    lanes = standings(table, "upper_loss", 15, (1, 10), "t").axes[0]
    assert [text.get_text() for text in lanes.get_yticklabels()] == ["A", "B", "C"]  # the best on top


def test_the_settings_of_the_main_comparison_are_the_best_of_their_grids():
    """The file says which values were chosen; the stored scores must say the same."""
    table = stored.read("hyper-representation", group="tuning")
    scores = tuning_scores(table, "upper_loss")
    chosen = {"FdeHBO": "FdeHBO, tuned", "PZOBO-S": "PZOBO-S, tuned", "F2SA": "F2SA", "F3SA": "F3SA"}
    runs = experiments.sweep("hyper-representation", "full")
    main_options = {run.label: run.options for run in runs if run.group == "main"}
    grid = {run.label: run.options for run in runs if run.group == "tuning"}
    for solver, rows in scores.groupby("solver"):
        assert len(rows) == 8
        if solver in chosen:
            assert main_options[chosen[solver]] == grid[rows.label.iloc[0]], solver


def test_the_decay_of_eta_in_hyper_cleaning_is_the_best_of_three():
    scores = tuning_scores(stored.read("hyper-cleaning", group="tuning"), "train_loss")
    runs = experiments.sweep("hyper-cleaning", "full")
    options = {(run.group, run.label): run.options for run in runs}
    assert set(scores.solver) == {
        label for (group, label), given in options.items() if group == "main" and "eta" in given
    }
    for solver, rows in scores.groupby("solver"):
        assert len(rows) == 3
        assert options["main", solver] == options["tuning", rows.label.iloc[0]], solver


def test_seeds_of_the_tuning_are_not_those_of_the_report():
    for name in JUDGED:
        groups = experiments.load(name).sizes["full"]
        tuned = set(groups["tuning"].seeds)
        reported = {seed for group, plan in groups.items() if group != "tuning" for seed in plan.seeds}
        assert not tuned & reported


@pytest.mark.parametrize("name", experiments.names())
def test_every_run_of_the_full_size_is_stored_with_these_settings(name):
    folder = RESULTS / name / "full"
    assert [run.name for run in experiments.sweep(name, "full") if not experiments.is_stored(run, folder)] == []


@pytest.mark.parametrize("name", JUDGED)
def test_the_verdicts_are_printed(name, capsys):
    assert main(["verdicts", name]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n[") == len(verdicts.of(name, stored.read(name))) > 0
    assert "[holds" in printed


def test_without_results_there_are_no_verdicts(tmp_path, capsys):
    assert main(["verdicts", "hyper-cleaning", "--results", str(tmp_path)]) == 2
    assert f"reproduce hyper-cleaning --size full --results {tmp_path}` first" in capsys.readouterr().err


def test_what_chapter_9_says_of_the_stored_runs():
    """The sentences of the chapter that no cell of it prints."""
    table = stored.read("hyper-representation")
    main_runs, slider = table[table.group == "main"], [10, 20, 30, 45, 60, 80, 100, 120, 150, 180, 210, 240, 270, 300]
    loss = band(at_marks(main_runs, "cpu_seconds", "upper_loss", slider))["mean"]
    behind = loss.loc["PZOBO-S"] < loss.loc["FdeHBO"]
    assert list(behind[behind].index) == [10, 20]
    published = loss.loc[["FdeHBO", "PZOBO-S"]].min()
    assert (loss.loc["alternating", 20:] < published.loc[20:]).all()
    assert (loss.loc["FdeHBO, tuned", 30:] == loss.loc[:, 30:].min()).sum() >= 10
    last = main_runs.groupby(["label", "seed"]).upper_loss.last()
    assert (last["F3SA"] > 2.2).sum() == 1
    assert last.groupby("label").mean()["FdeHBO"] / last.groupby("label").mean()["FdeHBO, tuned"] > 2.5

    scores = tuning_scores(table[table.group == "tuning"], "upper_loss")
    assert scores.loc[scores.score.idxmin(), "solver"] == "alternating"
    options = {run.label: run.options for run in experiments.sweep("hyper-representation", "full", ["tuning"])}
    grid = scores[scores.solver == "FdeHBO"].assign(
        alpha=lambda rows: [options[label]["alpha"] for label in rows.label],
        beta=lambda rows: [options[label]["beta"] for label in rows.label],
    )
    for _, column in grid.groupby("beta"):
        assert column.loc[column.score.idxmax(), "alpha"] == 0.008 == column.alpha.min()

    calls = band(at_marks(main_runs, "gradients", "upper_loss", [2000, 4000, 6000, 8000]))["mean"]
    assert (calls.loc["alternating"] == calls.min()).all()
    assert (calls.loc["F2SA"] < calls.loc["FdeHBO"]).all()
    assert (calls.loc["PZOBO-S"] < calls.loc["FdeHBO"]).all()


def test_what_chapter_10_says_of_the_stored_runs():
    """The sentences of the chapter that no cell of it prints."""
    table = stored.read("hyper-cleaning")
    runs = table[table.group == "main"]
    marks = [1, 2, 3, 4, 5, 8, 12, 14, 16, 20]
    loss = band(at_marks(runs, "cpu_seconds", "train_loss", marks))["mean"]
    paper = loss.drop("alternating")
    assert (paper.loc["FMBO", [1, 2, 3]] == paper[[1, 2, 3]].min()).all()
    assert loss.loc["FMBO", 1] < 1
    assert loss.loc["SOBA", 4] < loss.loc["FMBO", 4]
    assert loss.loc["stocBiO", 8] > loss.loc["FMBO", 8]
    assert loss.loc["stocBiO", 12] < loss.loc["FMBO", 12]
    assert loss.loc["FSLA", 12] > loss.loc["FMBO", 12]
    assert loss.loc["FSLA", 20] < loss.loc["FMBO", 20]
    assert loss.loc["alternating", 1] < loss.loc["FMBO", 1]
    settled = last_quarter_median(runs, "cpu_seconds", "train_loss").groupby("label").mean()
    four = settled[["SOBA", "stocBiO", "AmIGO", "FSLA"]]
    assert four.max() - four.min() < 0.015
    assert four.max() < settled["FMBO"] < settled.drop([*four.index, "FMBO"]).min()
    bound = last_quarter_median(table[table.group == "bounds"], "cpu_seconds", "train_loss")["nothing cleaned"].mean()
    assert (four - bound).abs().max() < 0.012
    restless = largest_rise(runs[runs.cpu_seconds > 6], "test_loss").groupby("label").mean().sort_values()
    assert list(restless.index[-3:]) == ["FMBO", "alternating", "BSA"]
    steps = runs.groupby(["label", "seed"]).step.last().unstack()
    slowed = 1 - steps.min(axis=1) / steps.max(axis=1)
    assert slowed.idxmax() == "VRBO"
    assert slowed.drop("VRBO").max() < 0.2 < slowed["VRBO"] < 0.25
    weights = runs.groupby(["label", "seed"])[["sigma_noisy", "sigma_clean"]].last().groupby("label").mean()
    assert weights.sigma_noisy.min() > 0.43
    assert (weights.sigma_noisy > 0.49).sum() == 10
    apart = weights.sigma_clean - weights.sigma_noisy
    assert apart.idxmax() == "FMBO"
    assert 0.06 < apart.max() < 0.065
    assert 0 < apart["AmIGO"] < 1 / 5000
    equal = table[table.group == "equal_steps"]
    equal = pd.concat([equal, runs[runs.seed.isin(equal.seed) & runs.label.isin(["FMBO", "SOBA", "FSLA"])]])
    climbs = largest_rise(equal[equal.cpu_seconds > 6], "train_loss").groupby("label").mean()
    assert climbs["FMBO, steps 0.1"] < climbs[["SOBA", "FSLA"]].min()
    assert climbs["FMBO"] < climbs[["SOBA, steps 0.3", "FSLA, steps 0.3"]].min()
    cleaning = table[table.group == "cleaning"]
    each = {label: (runs.groupby("seed").cpu_seconds.last() / runs.groupby("seed").step.last()).mean()
            for label, runs in table[table.solver == "reverse"].groupby("label")}  # fmt: skip
    assert 3.5 < each["reverse, K 200"] / each["reverse"] < 4.5
    early = band(at_marks(cleaning, "cpu_seconds", "auc", [2, 59]))["mean"]
    assert early.loc["FMBO, calm", 2] > 0.92 > 0.91 > early.loc["FMBO, calm", 59]


def test_the_gallery_shows_the_images_of_lowest_weight():
    weights = torch.linspace(0.9, 0.1, 30)  # the last have the least
    given, true = torch.arange(30) % 10, (torch.arange(30) + (torch.arange(30) % 3 == 0).long()) % 10
    picture = rejected(torch.zeros(30, 28, 28, dtype=torch.uint8), given, true, weights, "t", rows=1)
    words = [text.get_text() for text in picture.axes[0].texts]
    assert words[:3] == ["label 9, right\nweight 0.10", "label 8, right\nweight 0.13", "label 7, is 8\nweight 0.16"]
    assert len(words) == len(picture.axes[0].patches) == 6
    red = [patch for patch in picture.axes[0].patches if patch.get_edgecolor() == to_rgba(RED)]
    assert len(red) == 2  # 27 and 24 of the six


def test_a_race_can_be_cut_to_the_part_that_matters(table):
    panels = race(table, ["upper_loss", "upper_loss"], limits=[(1, 2), (3, 4)]).axes
    assert [panel.get_ylim() for panel in panels] == [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match="zip"):
        race(table, ["upper_loss"], limits=[(1, 2), (3, 4)])
