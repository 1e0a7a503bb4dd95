"""Runs under a budget: rows, clocks, budgets, the best state, several seeds, results."""

import math
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from bilevel_core import FMBO, BilevelProblem, FdeHBO, run, run_seeds, runner
from bilevel_core.problems import Quadratic
from bilevel_core.runner import Budget
from core.runs import CLOCKS, Ticking, interrupt, quadratic, quiet, same_history, same_state

# Budgets

CALLS = {"samples": 50, "gradients": 7, "Hv": 3, "Jv": 2}


def test_spent_is_steps_or_seconds_or_calls_at_their_prices():
    assert Budget(steps=10).spent(4, 0.3, CALLS) == 4
    assert Budget(seconds=10).spent(4, 0.3, CALLS) == 0.3
    assert Budget(gradients=10).spent(4, 0.3, CALLS) == 7 + 3 + 2
    assert Budget(gradients=10, prices={"Hv": 2.0, "Jv": 1.5}).spent(4, 0.3, CALLS) == 7 + 3 * 2.0 + 2 * 1.5


@pytest.mark.parametrize(
    ("given", "price", "rows"),
    [
        ({"steps": 10, "every": 4}, 1.0, [4, 8, 10]),
        ({"steps": 10, "every": [3, 5, 40]}, 1.0, [3, 5, 10]),
        ({"steps": 10, "rows": 3}, 1.0, [4, 8, 10]),
        ({"steps": 200}, 1.0, [*range(2, 201, 2)]),  # 100 rows
        ({"gradients": 30, "rows": 3}, 4.0, [3, 5, 8]),  # the first steps past 10, 20 and 30
        ({"gradients": 30, "every": 3}, 4.0, [3, 6, 8]),
        ({"seconds": 1.0, "every": [1, 7]}, 0.125, [1, 7, 8]),
    ],
    ids=str,
)
def test_rows_are_due_at_steps_or_at_equal_parts_of_the_budget_and_at_its_end(given, price, rows):
    budget = Budget(**given)
    steps = range(1, math.ceil(budget.limit[1] / price) + 1)
    assert [t for t in steps if budget.has_row(t, price * (t - 1), price * t)] == rows


class Timed(Quadratic):
    """Has a clock of its own, on which a draw takes a quarter of a second and an evaluation a minute."""

    now = 0.0

    def sample(self, generator):
        self.now += 0.25
        return super().sample(generator)

    def evaluate(self, x, y):
        self.now += 60
        return super().evaluate(x, y)

    def thread_time(self):
        return self.now

    def process_time(self):  # of all threads
        return 3 * self.now

    def perf_counter(self):
        return 2 * self.now


@pytest.fixture
def timed(monkeypatch):
    problem = Timed(noise=0.5)
    monkeypatch.setattr(runner, "time", problem)
    return problem


@pytest.mark.parametrize("threads", [1, 3])
def test_evaluation_checkpoints_and_other_threads_are_not_on_the_clock(timed, tmp_path, monkeypatch, threads):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    timed.state_dict = lambda: setattr(timed, "now", timed.now + 60) or {}
    history = run(timed, FMBO(), steps=20, every=4, checkpoint=tmp_path / "run.ckpt", **quiet).history
    assert history.cpu_seconds.tolist() == [0.25 * threads * t for t in range(0, 21, 4)]
    assert history.wall_seconds.tolist() == [0.5 * t for t in range(0, 21, 4)]


def test_seconds_on_several_processes_raise():
    problem = quadratic()
    problem.processes = lambda: (0, 2)
    with pytest.raises(ValueError, match="would not stop together: give steps or gradients"):
        run(problem, FMBO(), seconds=1.0)


def test_seconds_in_a_thread_beside_threads_of_torch_raise(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, quadratic(), FMBO(), seconds=0.01, **quiet)
        with pytest.raises(ValueError, match=r"seconds cannot be told apart .* give steps or gradients"):
            waiting.result()
        assert pool.submit(run, quadratic(), FMBO(), steps=2, **quiet).result().stop == "steps"
    assert run(quadratic(), FMBO(), seconds=0.01, **quiet).stop == "seconds"


# Rows


def test_history_has_the_promised_columns_and_rows():
    result = run(quadratic(), FdeHBO(), seed=1, steps=25, every=10, **quiet)
    history = result.history
    assert list(history) == [
        "step", *CLOCKS, "samples", "gradients", "Hv", "Jv", "norm_v", "objective", "hypergradient_norm", "lower_error",
    ]  # fmt: skip
    assert list(history.step) == [0, 10, 20, 25]
    assert history.norm_v.iloc[-1] == result.state.v.norm().item()
    assert list(history.samples) == [0, 20, 40, 50]
    assert list(history.gradients) == [0, 7 + 9 * 14, 7 + 19 * 14, 7 + 24 * 14]
    assert list(history.Hv) == list(history.Jv) == [0, 0, 0, 0]
    assert (result.stop, result.diverged_at, result.state.t) == ("steps", None, 25)
    last = quadratic().evaluate(result.state.x, result.state.y)
    assert history.iloc[-1][list(last)].to_dict() == last


def test_run_is_the_steps_one_after_the_other():
    solver, problem = FMBO(), quadratic()
    state = solver.init(problem, 3)
    for _ in range(17):
        state = solver.step(problem, state)
    assert same_state(state, run(problem, solver, 3, steps=17, **quiet).state)
    assert [*run(problem, solver, steps=300, **quiet).history.step] == [*range(0, 301, 3)]  # 100 rows, and the start


class Measured(FMBO):
    def measure(self, problem, state):
        return {"half": state.t / 2} | ({"at_ten": state.x.norm().item()} if state.t == 10 else {})


def test_method_may_add_columns():
    history = run(quadratic(), Measured(), steps=20, every=5, **quiet).history
    assert history.half.tolist() == [0, 2.5, 5, 7.5, 10]
    assert history.at_ten.notna().tolist() == [False, False, True, False, False]
    plain = run(quadratic(), FMBO(), steps=20, every=5, **quiet).history
    assert same_history(history.drop(columns=["half", "at_ten"]), plain.drop(columns="norm_v"))


@pytest.mark.parametrize(
    ("value", "plain"),
    [(True, 1), (np.float32(0.5), 0.5), (torch.tensor(7), 7), (torch.tensor(0.25, requires_grad=True), 0.25)],
)
def test_numbers_of_any_kind_become_plain(tmp_path, value, plain):
    problem = quadratic()
    problem.evaluate = lambda x, y: {"number": value}
    first, resumed = (run(problem, FMBO(), steps=2, checkpoint=tmp_path / "run.ckpt", **quiet) for _ in range(2))
    for result in (first, resumed):
        assert result.history.number.tolist() == [plain] * 3
        assert {*map(type, result.history.number.tolist())} == {type(plain)}


def test_evaluate_cannot_change_the_run():
    problem = quadratic()
    problem.evaluate = lambda x, y: {"zero": x.zero_().sum() + y.zero_().sum()}
    assert same_state(run(problem, FMBO(), steps=5, **quiet).state, run(quadratic(), FMBO(), steps=5, **quiet).state)


@pytest.mark.parametrize("every", [None, 1])
def test_divergence_is_recorded_with_its_step(every):
    too_large = FMBO(alpha=1e3, beta=1e3, lam=1e3, eta=1.0)
    result = run(quadratic(), too_large, steps=10_000, every=every, blow_up=math.inf, **quiet)
    assert (result.stop, result.nonfinite) == ("diverged", "y")
    last = result.history.iloc[-1]
    assert last.step == result.diverged_at == result.state.t + 1 < 1000
    assert pd.isna(last.objective)
    assert all(torch.isfinite(part).all() for part in (result.state.x, result.state.y, result.state.v))


def test_run_that_blows_up_stops_and_keeps_its_best_state(tmp_path):
    unstable, options = (
        FMBO(beta=0.8, eta=1.0),
        {"steps": 5000, "every": 10, "checkpoint": tmp_path / "run.ckpt"} | quiet,
    )
    start = quadratic().start(None)[0].norm().item()  # y_0 = 0
    for _ in range(2):  # the second time there is nothing to do
        result = run(quadratic(), unstable, **options)
        largest = [max(norms) / (1 + start) for norms in result.norms]
        assert (result.stop, result.nonfinite) == ("blew up", "")
        assert largest[-1] > 1e6 > max(largest[:-1])
        state, row = result.best
        assert row["objective"] == result.history.objective.min() < result.history.objective.iloc[0]
        assert same_state(state, run(quadratic(), unstable, steps=int(row["step"]), **quiet).state)
    for factor, row in ((0.999, -2), (1.001, -1)):  # just below and just above what the last but one has reached
        short = run(quadratic(), unstable, steps=5000, every=10, blow_up=factor * largest[-2], **quiet)
        assert short.state.t == result.history.step.iloc[row]


@pytest.mark.parametrize(
    ("columns", "watched"),
    [(["a_loss", "b"], "a_loss"), (["objective"], "objective"), (["b", "loss"], None), ([], None)],
)
def test_first_column_is_watched_if_it_is_a_loss(columns, watched):
    problem = quadratic()
    problem.evaluate = lambda x, y: dict.fromkeys(columns, 0.0)
    assert run(problem, FMBO(), steps=1, **quiet).loss_column == watched


def test_ctrl_c_keeps_what_was_done():
    part = run(Ticking(32), FdeHBO(), 2, steps=60, every=7, **quiet)
    assert part.stop == "interrupted"
    assert part.state.t == part.history.step.iloc[-1] == 31


def test_finished_run_is_not_run_again(tmp_path):
    first = run(Ticking(), FMBO(), steps=9, checkpoint=tmp_path / "run.ckpt", **quiet)
    untouched = Ticking()
    again = run(untouched, FMBO(), steps=9, checkpoint=tmp_path / "run.ckpt", **quiet)
    assert untouched.drawn == 2  # the first step and the last, to know the run
    assert again.stop == "steps"
    pd.testing.assert_frame_equal(first.history, again.history)


def test_bar_shows_steps_and_loss(capsys):
    run(quadratic(), FMBO(), steps=20)
    shown = capsys.readouterr().err
    assert all(words in shown for words in ("FMBO", "20/20 steps", "objective="))


# What one may ask for


def test_callback_sees_every_row_and_can_stop():
    seen = []

    def callback(state, row):
        seen.append((state.t, row["objective"]))
        return state.t >= 20

    result = run(quadratic(), FMBO(), steps=100, every=5, callback=callback, **quiet)
    assert result.stop == "callback"
    assert seen == list(zip([0, 5, 10, 15, 20], result.history.objective, strict=True))
    assert same_state(result.state, run(quadratic(), FMBO(), steps=20, **quiet).state)
    goes_on = run(quadratic(), FMBO(), steps=20, callback=lambda state, row: None, **quiet)
    assert (goes_on.stop, goes_on.state.t) == ("steps", 20)


def test_run_starts_where_it_is_told_and_has_the_metrics_asked_for():
    x, y = torch.ones(5, dtype=torch.float64), torch.full((10,), 2.0, dtype=torch.float64)
    metrics = {"mean_y": lambda x, y: y.mean(), "spoilt": lambda x, y: x.zero_().sum()}
    result = run(quadratic(), FMBO(), 3, steps=20, every=5, start=(x, y), metrics=metrics, best="-mean_y", **quiet)
    solver = FMBO()
    state = solver.init(quadratic(), 3, x=x, y=y)
    means = [state.y.mean().item()]
    for t in range(20):
        state = solver.step(quadratic(), state)
        means += [state.y.mean().item()] * (t % 5 == 4)
    assert same_state(result.state, state)
    assert result.history.mean_y.tolist() == means
    assert result.best[1]["mean_y"] == max(means)


class Bowl(Quadratic):
    """Its columns go down, up, down to the least at row 4, and up again."""

    numbers = (math.nan, 5.0, 7.0, math.nan, 1.0, 3.0, 2.0, 4.0, 4.0, 4.0, 4.0)

    def start(self, generator):
        self.row = -1
        return super().start(generator)

    def evaluate(self, x, y):
        self.row += 1
        return {"loss": self.numbers[self.row], "accuracy": -self.numbers[self.row]}


@pytest.mark.parametrize("best", ["loss", "-accuracy"])
def test_best_state_is_kept(best):
    result = run(Bowl(noise=0.5), FMBO(), steps=20, every=2, best=best, **quiet)
    state, row = result.best
    assert (row["step"], row["loss"], result.stop) == (8, 1.0, "steps")
    assert same_state(state, run(Bowl(noise=0.5), FMBO(), steps=8, every=2, **quiet).state)
    assert run(Bowl(), FMBO(), steps=4, every=2, **quiet).best is None
    for none in ("Hv", "-Hv"):  # the first of equals
        assert run(quadratic(), FdeHBO(), steps=4, every=2, best=none, **quiet).best[0].t == 0


def test_best_state_survives_an_interruption(tmp_path):
    options = {"steps": 40, "every": 2, "best": "-lower_error"} | quiet
    whole = run(Ticking(), FdeHBO(), 1, **options)
    for when in (5, 6, 8):
        run(Ticking(when), FdeHBO(), 1, **options, checkpoint=tmp_path / "run.ckpt")
    for _ in range(2):  # the second time there is nothing to do
        resumed = run(Ticking(), FdeHBO(), 1, **options, checkpoint=tmp_path / "run.ckpt")
        assert resumed.stop == whole.stop == "steps"
        assert same_history(whole.history, resumed.history)
        assert same_state(whole.best[0], resumed.best[0])
        assert whole.best[1]["lower_error"] == resumed.best[1]["lower_error"] == whole.history.lower_error.max()


def test_name_stands_for_what_suggest_finds(monkeypatch, capsys):
    asked = []

    def suggest(problem, name, seed):
        asked.append((name, seed))
        return SimpleNamespace(solver=FMBO(alpha=0.123), line="FMBO(alpha=0.123), since so it goes")

    monkeypatch.setattr(runner, "suggest", suggest)
    by_name = run(quadratic(), "FMBO", 3, steps=5)
    assert capsys.readouterr().err.startswith("FMBO(alpha=0.123), since so it goes\n")
    assert same_state(by_name.state, run(quadratic(), FMBO(alpha=0.123), 3, steps=5, **quiet).state)
    run_seeds(quadratic(), "FMBO", [4, 5], steps=5, **quiet)
    assert capsys.readouterr().err == ""
    assert asked == [("FMBO", 3), ("FMBO", 4)]  # once, so that the seeds differ in nothing else


# Results


def test_several_seeds_have_a_checkpoint_each_and_an_interruption_ends_them(tmp_path):
    options = {"steps": 12, "every": 3, "checkpoint": tmp_path / "run.ckpt"} | quiet
    part = run_seeds(Ticking(8), FMBO(), [5, 6], **options)
    assert [result.stop for result in part.runs.values()] == ["interrupted"]
    whole = run_seeds(Ticking(), FMBO(), [5, 6], **options)
    assert whole.table.loc[6].step.tolist() == [0, 3, 6, 9, 12]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run_5.ckpt", "run_6.ckpt"]
    assert same_history(whole.runs[5].history, run(Ticking(), FMBO(), 5, steps=12, every=3, **quiet).history)


def test_result_says_in_a_line_what_it_is():
    result = run(quadratic(), FMBO(r_v=0.01), steps=20, every=2, **quiet)
    first, last = result.history.objective.iloc[[0, -1]]
    words = f"FMBO on Quadratic, 20 steps, stop: steps, objective {first:.4g} -> {last:.4g}, 2 in .warnings"
    assert len(result.warnings) == 2  # v at its ball, and x on its way
    assert repr(result) == f"<{words}>"


def test_interrupted_row_is_not_saved_half(tmp_path):
    """A Ctrl-C in `evaluate`: the next run evaluates that row again."""
    problem, rows = Ticking(), iter(range(100))
    evaluate = problem.evaluate
    problem.evaluate = lambda x, y: interrupt() if next(rows) == 3 else evaluate(x, y)
    options = {"steps": 30, "every": 5, "checkpoint": tmp_path / "run.ckpt"} | quiet
    assert run(problem, FMBO(), **options).stop == "interrupted"
    resumed = run(Ticking(), FMBO(), **options)
    assert same_history(resumed.history, run(Ticking(), FMBO(), steps=30, every=5, **quiet).history)


def test_refit_takes_as_long_as_it_may(monkeypatch):
    given = []
    monkeypatch.setattr(runner.refitting, "refit", lambda *where, seconds: given.append(seconds))
    for refit in (True, 2.5):
        run(quadratic(), FMBO(), steps=2, refit=refit, **quiet)
    assert given == [math.inf, 2.5]


def test_refit_that_is_not_possible_is_refused_before_the_work():
    class Drawn(Quadratic):
        full = BilevelProblem.full

    rows = []
    with pytest.raises(ValueError, match="has no `full`"):
        run(Drawn(noise=0.5), FMBO(), steps=5, refit=True, callback=lambda state, row: rows.append(row), **quiet)
    assert not rows
