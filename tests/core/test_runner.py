import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

from bilevel_core import FMBO, SOBA, FdeHBO, checkpoint, run, runner
from bilevel_core.checkpoint import rows_of
from bilevel_core.problems import Quadratic

TIMES = ["cpu_seconds", "wall_seconds"]


def same_state(a, b):
    flat = lambda s: [s.x, s.y, s.v, s.rng, *s.before, *s.h]  # noqa: E731
    return a.t == b.t and all(torch.equal(p, q) for p, q in zip(flat(a), flat(b), strict=True))


def same_history(a, b):
    pd.testing.assert_frame_equal(a.drop(columns=TIMES), b.drop(columns=TIMES), check_exact=True)
    return True


def quadratic():
    return Quadratic(noise=0.5)


class Ticking(Quadratic):
    """Does something at its n-th draw after the start; when and what are no part of what a checkpoint identifies."""

    def __init__(self, when=None, what=None):
        super().__init__(noise=0.5)
        self._when, self._what = when, what

    def start(self, generator):
        self._drawn = 0
        return super().start(generator)

    def sample(self, generator):
        self._drawn += 1
        if self._drawn == self._when:
            self._what()
        return super().sample(generator)


class Timed(Quadratic):
    """Has a clock of its own, on which a draw takes a quarter of a second and an evaluation a minute."""

    now = 0.0

    def sample(self, generator):
        self.now += 0.25
        return super().sample(generator)

    def evaluate(self, x, y):
        self.now += 60
        return super().evaluate(x, y)

    def process_time(self):
        return self.now

    def perf_counter(self):
        return 2 * self.now


@pytest.fixture
def timed(monkeypatch):
    problem = Timed(noise=0.5)
    monkeypatch.setattr(runner, "time", problem)
    return problem


def test_history_has_the_promised_columns_and_rows():
    result = run(quadratic(), FdeHBO(), seed=1, steps=25, every=10, progress=False)
    history = result.history
    assert list(history) == [
        "step", *TIMES, "samples", "gradients", "Hv", "Jv", "norm_v", "objective", "hypergradient_norm", "lower_error",
    ]  # fmt: skip
    assert list(history.step) == [0, 10, 20, 25]
    assert history.norm_v.iloc[-1] == result.state.v.norm().item()
    by_rows = run(quadratic(), FdeHBO(), seed=1, steps=25, rows=5, progress=False).history
    assert list(by_rows.step) == [0, 5, 10, 15, 20, 25]
    assert list(history.samples) == [0, 20, 40, 50]
    assert list(history.gradients) == [0, 7 + 9 * 14, 7 + 19 * 14, 7 + 24 * 14]
    assert list(history.Hv) == list(history.Jv) == [0, 0, 0, 0]
    assert history.cpu_seconds.is_monotonic_increasing
    assert result.stop == "steps"
    assert result.diverged_at is None
    assert result.state.t == 25
    last = quadratic().evaluate(result.state.x, result.state.y)
    assert history.iloc[-1][list(last)].to_dict() == last


def test_a_run_is_the_steps_one_after_the_other():
    solver, problem = FMBO(), quadratic()
    state = solver.init(problem, 3)
    for _ in range(17):
        state = solver.step(problem, state)
    assert same_state(state, run(problem, solver, 3, steps=17, progress=False).state)


def test_evaluation_is_not_on_the_clock(timed):
    history = run(timed, FMBO(), steps=20, every=1, progress=False).history
    assert history.cpu_seconds.tolist() == [0.25 * t for t in range(21)]
    assert history.wall_seconds.tolist() == [0.5 * t for t in range(21)]


def test_a_budget_in_seconds(timed):
    result = run(timed, FMBO(), seconds=10, rows=5, progress=False)
    assert result.stop == "seconds"
    assert result.history.step.tolist() == [0, 8, 16, 24, 32, 40]
    assert result.history.cpu_seconds.tolist() == [0, 2, 4, 6, 8, 10]


def test_rows_at_listed_steps():
    history = run(quadratic(), FMBO(), steps=30, every=[1, 2, 5, 10, 20], progress=False).history
    assert history.step.tolist() == [0, 1, 2, 5, 10, 20, 30]
    every = run(quadratic(), FMBO(), steps=30, every=1, progress=False).history
    assert same_history(history, every[every.step.isin(history.step)].reset_index(drop=True))


class Measured(FMBO):
    def measure(self, problem, state):
        return {"half": state.t / 2} | ({"at_ten": state.x.norm().item()} if state.t == 10 else {})


def test_a_method_may_add_columns(tmp_path):
    history = run(quadratic(), Measured(), steps=20, every=5, progress=False).history
    assert history.half.tolist() == [0, 2.5, 5, 7.5, 10]
    assert history.at_ten.notna().tolist() == [False, False, True, False, False]
    assert "norm_v" not in history
    plain = run(quadratic(), FMBO(), steps=20, every=5, progress=False).history
    assert same_history(history.drop(columns=["half", "at_ten"]), plain.drop(columns="norm_v"))


class Drifting(Quadratic):
    """A problem that each draw changes, and that can be put back."""

    def start(self, generator):
        self.shift = torch.zeros(1, dtype=torch.float64)
        return super().start(generator)

    def sample(self, generator):
        self.shift += torch.rand(1, generator=generator, dtype=torch.float64)
        return super().sample(generator)

    def upper(self, x, y, batch):
        return super().upper(x, y, batch) + (self.shift * y).sum()

    def state_dict(self):
        return {"shift": self.shift}

    def load_state_dict(self, state):
        self.shift = state["shift"]


def test_a_problem_that_changes_is_put_back(tmp_path):
    whole = run(Drifting(noise=0.5), FdeHBO(), 2, steps=30, every=7, progress=False)
    part = run(Drifting(noise=0.5), FdeHBO(), 2, steps=21, every=7, progress=False, checkpoint=tmp_path / "run.ckpt")
    assert part.state.t == 21
    resumed = run(Drifting(noise=0.5), FdeHBO(), 2, steps=30, every=7, progress=False, checkpoint=tmp_path / "run.ckpt")
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


def test_divergence_is_recorded_with_its_step():
    result = run(quadratic(), FMBO(alpha=1e3, beta=1e3, lam=1e3, eta=1.0), steps=10_000, progress=False)
    assert result.stop == "diverged"
    last = result.history.iloc[-1]
    assert last.step == result.diverged_at == result.state.t + 1 < 1000
    assert pd.isna(last.objective)
    assert all(torch.isfinite(part).all() for part in (result.state.x, result.state.y, result.state.v))


def test_a_diverged_run_stays_diverged(tmp_path):
    solver = FMBO(alpha=1e3, beta=1e3, lam=1e3, eta=1.0)
    results = [
        run(quadratic(), solver, steps=10_000, progress=False, checkpoint=tmp_path / "run.ckpt") for _ in range(2)
    ]
    assert results[1].stop == "diverged"
    assert results[0].diverged_at == results[1].diverged_at
    assert same_history(results[0].history, results[1].history)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done_and_the_resumed_run_is_bit_equal(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = run(quadratic(), FdeHBO(), 2, steps=60, every=7, progress=False)
    part = run(Ticking(32, interrupt), FdeHBO(), 2, steps=60, every=7, progress=False)
    assert part.stop == "interrupted"
    assert part.state.t == part.history.step.iloc[-1] == 31
    for when in (32, 20):  # twice in a row, from where the last one stopped
        problem = Ticking(when, interrupt)
        assert run(problem, FdeHBO(), 2, steps=60, every=7, progress=False, checkpoint=path).stop == "interrupted"
    resumed = run(Ticking(), FdeHBO(), 2, steps=60, every=7, progress=False, checkpoint=path)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


@pytest.mark.slow
def test_a_killed_run_resumes_bit_equal(tmp_path):
    path = tmp_path / "run.ckpt"
    script = textwrap.dedent(f"""
        import torch
        torch.set_num_threads(1)
        from bilevel_core import FdeHBO, run
        from bilevel_core.problems import Quadratic
        run(Quadratic(noise=0.5), FdeHBO(), 4, steps=10**6, every=5, progress=False, checkpoint={str(path)!r})
    """)
    process = subprocess.Popen([sys.executable, "-c", script])
    while not path.exists() or checkpoint.read(path)[0]["state"][3] < 20:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = checkpoint.read(path)[0]["state"][3]
    assert done % 5 == 0
    steps = done + 12
    resumed = run(quadratic(), FdeHBO(), 4, steps=steps, every=5, progress=False, checkpoint=path)
    whole = run(quadratic(), FdeHBO(), 4, steps=steps, every=5, progress=False)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


@pytest.mark.slow
def test_a_run_killed_while_it_saves_resumes_bit_equal(tmp_path):
    """One process imports everything, and forks a child for each death."""
    moments = "before the append", "after the append", "before the rename", "after the rename"
    deaths = {str(tmp_path / f"{moment}, {save}.ckpt"): (moment, save) for moment in moments for save in (1, 3)}
    script = textwrap.dedent(f"""
        import os, signal
        import pandas  # here, not in every child
        from bilevel_core import FdeHBO, checkpoint, run
        from bilevel_core.problems import Quadratic
        checkpoint.PAUSE = 0.0  # every row is saved

        def deadly(name, real):
            def call(*arguments):
                due = name in moment and next(saves, None) is None
                if due and "before" in moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                real(*arguments)
                if due:
                    os.kill(os.getpid(), signal.SIGKILL)
            return call

        os.replace = deadly("rename", os.replace)
        checkpoint.append = deadly("append", checkpoint.append)
        for path, (moment, save) in {deaths!r}.items():
            child, saves = os.fork(), iter(range(save - 1))
            if not child:
                run(Quadratic(noise=0.5), FdeHBO(), 4, steps=30, every=5, progress=False, checkpoint=path)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL, path
    """)
    subprocess.run([sys.executable, "-c", script], check=True)
    whole = run(quadratic(), FdeHBO(), 4, steps=30, every=5, progress=False)
    for path in deaths:
        resumed = run(quadratic(), FdeHBO(), 4, steps=30, every=5, progress=False, checkpoint=path)
        assert same_state(whole.state, resumed.state), path
        assert same_history(whole.history, resumed.history)
        assert len(rows_of(Path(path)).read_bytes().splitlines()) == len(whole.history), path


def test_a_file_of_rows_without_its_checkpoint_is_overwritten_and_a_short_one_is_named(tmp_path):
    path = tmp_path / "run.ckpt"
    rows_of(path).write_text('{"step": 99}\n' * 50)
    first = run(quadratic(), FMBO(), steps=6, every=2, progress=False, checkpoint=path)
    pd.testing.assert_frame_equal(
        first.history, run(quadratic(), FMBO(), steps=6, every=2, progress=False, checkpoint=path).history
    )
    assert first.history.step.tolist() == [0, 2, 4, 6]
    rows_of(path).write_bytes(rows_of(path).read_bytes()[:-30])
    with pytest.raises(
        ValueError, match=r"run.ckpt is no checkpoint of this run \(run.ckpt.rows is damaged or too short"
    ):
        run(quadratic(), FMBO(), steps=6, every=2, progress=False, checkpoint=path)


def test_a_finished_run_is_not_run_again(tmp_path):
    first = run(Ticking(), FMBO(), steps=9, progress=False, checkpoint=tmp_path / "run.ckpt")
    untouched = Ticking()
    again = run(untouched, FMBO(), steps=9, progress=False, checkpoint=tmp_path / "run.ckpt")
    assert untouched._drawn == 0
    assert again.stop == "steps"
    pd.testing.assert_frame_equal(first.history, again.history)


def test_the_bar_shows_loss_and_rate(capsys):
    run(quadratic(), FMBO(), steps=20)
    shown = capsys.readouterr().err
    assert "FMBO" in shown
    assert "20/20" in shown
    assert "step/s" in shown
    assert "objective=" in shown
    run(quadratic(), SOBA(), seconds=0.05)
    assert "s CPU" in capsys.readouterr().err
    run(quadratic(), SOBA(), gradients=50)
    assert "50.0/50.0 gradients" in capsys.readouterr().err
