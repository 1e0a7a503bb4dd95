"""What one may ask of a run: budgets, callbacks, the best state, several seeds, pictures, names."""

import sys
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from bilevel_core import FMBO, SOBA, FdeHBO, run
from bilevel_core.problems import Quadratic
from bilevel_core.runner import run_seeds
from core.test_runner import Ticking, interrupt, quadratic, same_history, same_state

quiet = {"progress": False}


@pytest.mark.parametrize(("prices", "Hv", "Jv"), [(None, 1, 1), ({"Hv": 2.5}, 2.5, 1), ({"Hv": 0.5, "Jv": 4}, 0.5, 4)])
def test_a_budget_in_gradients_ends_with_the_first_step_that_reaches_it(prices, Hv, Jv):
    """A step of SOBA costs 3 gradients, 1 H v and 1 J v."""
    result = run(quadratic(), SOBA(), gradients=100, prices=prices, rows=4, **quiet)
    spent = result.history.gradients + Hv * result.history.Hv + Jv * result.history.Jv
    step = 3 + Hv + Jv
    assert result.stop == "gradients"
    assert spent.iloc[-1] - step < 100 <= spent.iloc[-1]
    assert [mark <= amount < mark + step for mark, amount in zip((0, 25, 50, 75, 100), spent, strict=True)] == [
        True
    ] * 5


def test_methods_of_other_costs_are_read_at_the_same_marks():
    for solver, step in ((SOBA(), 5), (FdeHBO(), 14)):
        history = run(quadratic(), solver, gradients=1000, rows=10, **quiet).history
        spent = history[["gradients", "Hv", "Jv"]].sum(axis=1)
        assert len(spent) == 11
        assert ((spent - 100 * history.index) >= 0).all()
        assert ((spent - 100 * history.index) < step).all()


def test_a_budget_in_gradients_resumes_bit_equal(tmp_path):
    options = {"gradients": 300, "prices": {"Hv": 2.0, "Jv": 1.5}, "rows": 10} | quiet
    whole = run(Ticking(), FMBO(), 2, **options)
    assert run(Ticking(20, interrupt), FMBO(), 2, **options, checkpoint=tmp_path / "run.ckpt").stop == "interrupted"
    resumed = run(Ticking(), FMBO(), 2, **options, checkpoint=tmp_path / "run.ckpt")
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


def test_a_callback_sees_every_row_and_can_stop():
    seen = []

    def callback(state, row):
        seen.append((state.t, row["step"], row["objective"]))
        return state.t >= 20

    result = run(quadratic(), FMBO(), steps=100, every=5, callback=callback, **quiet)
    assert result.stop == "callback"
    assert [t for t, _, _ in seen] == [0, 5, 10, 15, 20] == result.history.step.tolist()
    assert [row for _, _, row in seen] == result.history.objective.tolist()
    assert same_state(result.state, run(quadratic(), FMBO(), steps=20, **quiet).state)
    goes_on = run(quadratic(), FMBO(), steps=20, callback=lambda state, row: None, **quiet)
    assert (goes_on.stop, goes_on.state.t) == ("steps", 20)


class Bowl(Quadratic):
    """Its columns go down, up, down to the least at row 4, and up again."""

    numbers = (float("nan"), 5.0, 7.0, float("nan"), 1.0, 3.0, 2.0, 4.0, 4.0, 4.0, 4.0)

    def start(self, generator):
        self._row = -1
        return super().start(generator)

    def evaluate(self, x, y):
        self._row += 1
        return {"loss": self.numbers[self._row], "accuracy": -self.numbers[self._row]}


@pytest.mark.parametrize("best", ["loss", "-accuracy"])
def test_the_best_state_is_kept(best):
    result = run(Bowl(noise=0.5), FMBO(), steps=20, every=2, best=best, **quiet)
    state, row = result.best
    assert (row["step"], row["loss"], result.stop) == (8, 1.0, "steps")
    assert same_state(state, run(Bowl(noise=0.5), FMBO(), steps=8, every=2, **quiet).state)
    assert run(Bowl(), FMBO(), steps=4, every=2, **quiet).best is None


@pytest.mark.parametrize(("patience", "steps"), [(1, 4), (3, 14), (7, 20)])
def test_patience_ends_a_run_after_so_many_rows_without_a_better_one(patience, steps):
    result = run(Bowl(), FMBO(), steps=20, every=2, best="loss", patience=patience, **quiet)
    assert result.state.t == steps
    assert result.stop == ("steps" if steps == 20 else "patience")


def test_the_best_state_and_patience_survive_an_interruption(tmp_path):
    options = {"steps": 40, "every": 2, "best": "-lower_error", "patience": 4} | quiet
    whole = run(Ticking(), FdeHBO(), 1, **options)
    for when in (5, 4, 6):
        run(Ticking(when, interrupt), FdeHBO(), 1, **options, checkpoint=tmp_path / "run.ckpt")
    for _ in range(2):  # the second time there is nothing to do
        resumed = run(Ticking(), FdeHBO(), 1, **options, checkpoint=tmp_path / "run.ckpt")
        assert resumed.stop == whole.stop == "patience"
        assert same_history(whole.history, resumed.history)
        assert same_state(whole.best[0], resumed.best[0])
        assert whole.best[1]["lower_error"] == resumed.best[1]["lower_error"] == whole.history.lower_error.max()


def test_several_seeds_give_a_table_a_mean_and_a_band():
    results = run_seeds(quadratic(), FMBO(), [3, 1, 4], steps=20, every=5, **quiet)
    single = [run(quadratic(), FMBO(), seed, steps=20, every=5, **quiet).history for seed in (3, 1, 4)]
    assert [*results.runs] == [3, 1, 4]
    assert results.table.loc[1].objective.tolist() == single[1].objective.tolist()
    columns = pd.concat([history.objective for history in single], axis=1)
    assert results.over_seeds().objective.tolist() == pytest.approx(columns.mean(axis=1).tolist(), rel=1e-12)
    assert results.over_seeds("min").objective.tolist() == columns.min(axis=1).tolist()
    assert results.over_seeds("max").objective.tolist() == columns.max(axis=1).tolist()
    assert results.over_seeds().step.tolist() == [0, 5, 10, 15, 20]


def test_a_mean_ends_where_the_first_run_ends_and_a_diverged_run_is_not_dropped():
    ends = iter(
        [False, False, True, False, False, False, True]
    )  # the first run after three rows, the second after four
    results = run_seeds(quadratic(), FMBO(), [0, 1], steps=100, every=5, callback=lambda *_: next(ends), **quiet)
    assert [len(result.history) for result in results.runs.values()] == [3, 4]
    assert results.over_seeds().step.tolist() == [0, 5, 10]
    wild = run_seeds(quadratic(), FMBO(beta=1e3, eta=1.0), [0, 1], steps=1000, every=1000, **quiet)
    assert wild.over_seeds().objective.isna().tolist() == [False, True]


def test_several_seeds_have_a_checkpoint_each_and_an_interruption_ends_them(tmp_path):
    options = {"steps": 12, "every": 3, "checkpoint": tmp_path / "run.ckpt"} | quiet
    part = run_seeds(Ticking(8, interrupt), FMBO(), [5, 6], **options)
    assert [result.stop for result in part.runs.values()] == ["interrupted"]
    whole = run_seeds(Ticking(), FMBO(), [5, 6], **options)
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == ["run_5.ckpt", "run_6.ckpt"]
    assert same_history(whole.runs[5].history, run(Ticking(), FMBO(), 5, steps=12, every=3, **quiet).history)


def test_a_result_says_in_a_line_what_it_is():
    result = run(quadratic(), FMBO(r_v=0.01), steps=20, every=2, **quiet)
    first, last = result.history.objective.iloc[[0, -1]]
    words = f"FMBO on Quadratic, 20 steps, stop: steps, objective {first:.4g} -> {last:.4g}, 2 in .warnings"
    assert len(result.warnings) == 2  # v at its ball, and x on its way
    assert repr(result) == f"<{words}>"
    page = result._repr_html_()
    assert page.startswith(f"<p>{words.replace('>', '&gt;')}</p><p>v was on the sphere")
    assert page.count("<tr>") == 2  # the first row and the last


def test_a_result_draws_itself():
    import matplotlib as mpl

    mpl.use("Agg")
    result = run(quadratic(), FMBO(), steps=10, **quiet)
    for axes, x, y in (
        (result.plot(), "step", "objective"),
        (result.plot("norm_v", against="gradients"), "gradients", "norm_v"),
    ):
        assert axes.lines[0].get_xdata().tolist() == result.history[x].tolist()
        assert axes.lines[0].get_ydata().tolist() == result.history[y].tolist()
    mpl.pyplot.close("all")


def test_without_matplotlib_a_picture_says_what_is_missing(monkeypatch):
    import pandas.plotting._core as core

    result = run(quadratic(), FMBO(), steps=3, **quiet)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "pandas.plotting._matplotlib", None)
    monkeypatch.setattr(core, "_backends", {})
    with pytest.raises(ImportError, match="matplotlib is required for plotting"):
        result.plot()


def test_a_name_stands_for_what_suggest_finds(monkeypatch, capsys):
    asked = []

    def suggest(problem, name, seed):
        asked.append((name, seed))
        return SimpleNamespace(solver=FMBO(alpha=0.123), line="FMBO(alpha=0.123), since so it goes")

    monkeypatch.setattr("bilevel_core.runner.suggest", suggest)
    by_name = run(quadratic(), "FMBO", 3, steps=5)
    assert capsys.readouterr().err.startswith("FMBO(alpha=0.123), since so it goes\n")
    assert same_state(by_name.state, run(quadratic(), FMBO(alpha=0.123), 3, steps=5, **quiet).state)
    run(quadratic(), "FMBO", 3, steps=5, **quiet)
    assert capsys.readouterr().err == ""
    assert asked == [("FMBO", 3)] * 2
    run_seeds(quadratic(), "FMBO", [4, 5], steps=5, **quiet)
    assert asked[2:] == [("FMBO", 4)]  # once, so that the seeds differ in nothing else


def test_refit_solves_the_lower_level_at_the_last_x_or_the_best(monkeypatch):
    def refit(problem, x, seed):
        return SimpleNamespace(x=x, seed=seed, warnings=(), numbers={})

    monkeypatch.setattr("bilevel_core.runner.cold_start", refit)
    result = run(quadratic(), FMBO(), 3, steps=5, refit=True, **quiet)
    assert torch.equal(result.refit.x, result.state.x)
    assert result.refit.seed == 3
    result = run(Bowl(), FMBO(), steps=20, every=2, best="loss", refit=True, **quiet)
    assert torch.equal(result.refit.x, result.best[0].x)
    assert not torch.equal(result.refit.x, result.state.x)
    assert run(quadratic(), FMBO(), 3, steps=5, **quiet).refit is None
