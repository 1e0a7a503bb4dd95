"""Sweeps: each run is done once, whole, wherever it is done and however often it was interrupted."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from bilevel_book.experiments.storing import checkpoint_of

import kills
from bilevel_book.experiments import is_stored, perform, reproduce, running, store, sweep, verify
from bilevel_book.methods import SOLVERS

TIMES = ["cpu_seconds", "wall_seconds"]
TESTS = Path(__file__).parents[2]


def content(folder):
    """Every CSV, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.csv"))}


@pytest.mark.slow
def test_what_is_there_is_not_done_again_unless_its_settings_changed(write, folder):
    runs = sweep(write(), "full", ["main"])
    assert len(reproduce(runs, folder, progress=False)) == 6
    assert reproduce(runs, folder, progress=False) == []
    changed = sweep(write(("delta = 1.0", "delta = 0.5")), "full", ["main"])
    assert {run.label for run in reproduce(changed, folder, progress=False)} == {"FdeHBO, delta 1"}


@pytest.mark.slow  # two processes
def test_side_by_side_gives_what_one_by_one_gives(small, folder):
    runs = sweep(small, "full")
    reproduce(runs, folder / "one", jobs=1, progress=False)
    reproduce(runs, folder / "two", jobs=2, progress=False)
    assert content(folder / "one") == content(folder / "two")


def test_no_more_processes_than_runs(tmp_path, folder):
    (run, *_) = kills.sweep(tmp_path / "trace", seeds=1, pause=0.0)
    reproduce([run], folder, jobs=999, progress=False)
    assert kills.draws(tmp_path / "trace").keys() == {os.getpid()}  # for one run, none but this


def test_an_interrupted_run_resumes_to_the_same_history(small, folder, monkeypatch):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    straight, _ = perform(run)
    steps = iter(range(13))

    def step(self, problem, state, real=SOLVERS["SOBA"].step):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return real(self, problem, state)

    with monkeypatch.context() as patch:
        patch.setattr(SOLVERS["SOBA"], "step", step)
        with pytest.raises(KeyboardInterrupt):
            reproduce([run], folder, progress=False)
    assert not is_stored(run, folder)
    history, _ = perform(run, checkpoint_of(run, folder))
    pd.testing.assert_frame_equal(history.drop(columns=TIMES), straight.drop(columns=TIMES), check_exact=True)
    assert reproduce([run], folder, progress=False) == [run]  # the lock went with the one who was interrupted
    assert not list(folder.rglob("*.ckpt*"))


def test_a_checkpoint_that_outlived_its_run_goes(small, folder):
    """A kill between a result and the end of its checkpoint: were the result removed, nothing would be computed."""
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    checkpoint = checkpoint_of(run, folder)
    store(run, *perform(run, checkpoint), folder / "elsewhere")
    reproduce([run], folder / "other", progress=False)
    for path in (folder / "other").rglob("SOBA_0.*"):
        path.rename(folder / "main" / path.name)
    other = checkpoint.with_name("SOBA_0.other.ckpt")
    for path in (other, checkpoint.with_name(f"SOBA_0.{run.fingerprint}.oldcode.ckpt")):
        path.touch()
    assert checkpoint.exists()
    assert reproduce([run], folder, progress=False) == []
    assert [path.name for path in checkpoint.parent.glob("*.ckpt*")] == [other.name]  # of other settings: still of use


@pytest.mark.slow  # three processes
def test_a_killed_sweep_goes_on(write, folder, tmp_path):
    """kill -9 while two workers run, then the same sweep again: the files are those of a sweep that was left alone."""
    gate = tmp_path / "gate"  # runs halt after 25 draws, so both workers are in the middle of one when they are killed
    path = write(
        ('problem = "Quadratic"', 'problem = "core.experiments.waiting:Waiting"'),
        ("options = { noise = 0.5 }", f'options = {{ gate = "{gate}", after = 25 }}'),
    )
    script = textwrap.dedent(f"""
        import pathlib
        from bilevel_book.experiments import reproduce, sweep
        reproduce(sweep({path!r}, "full", ["main"]), pathlib.Path({str(folder)!r}), jobs=2)
    """)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, env=environment)
    while len(list(folder.rglob("*.ckpt"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2
    process.kill()
    process.wait()
    assert kills.ended(family)  # no orphan, though each is in the middle of a run
    assert list(folder.rglob("*.ckpt"))
    assert not list(folder.rglob("*.csv"))
    gate.touch()
    runs = sweep(path, "full", ["main"])
    assert len(reproduce(runs, folder, progress=False)) == 6
    reproduce(runs, folder / "straight", progress=False)
    assert content(folder / "main") == content(folder / "straight" / "main")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one commit, in which the library seems to lie; and git in it."""
    environment = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")

    def git(*arguments):
        command = ["git", *author, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=os.environ | environment, check=True, capture_output=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "of something else")
    file = tmp_path / "library" / "experiments" / "running.py"
    file.parent.mkdir(parents=True)
    file.write_text("first")
    monkeypatch.setattr(running, "__file__", str(file))
    running.commit.cache_clear()
    yield git
    running.commit.cache_clear()


def test_the_commit_is_that_of_the_checkout(checkout, tmp_path):
    assert running.commit() is None  # a checkout, but the library is no part of it
    (tmp_path / "result.csv").write_text("first")
    checkout("add", "library", "result.csv")
    checkout("commit", "-q", "-m", "first")
    running.commit.cache_clear()
    head = checkout("rev-parse", "HEAD").stdout.decode().strip()
    assert running.commit() == head
    (tmp_path / "result.csv").write_text("a changed result changes nothing")
    running.commit.cache_clear()
    assert running.commit() == head
    (tmp_path / "library" / "experiments" / "running.py").write_text("second")
    running.commit.cache_clear()
    assert running.commit() == f"{head}-dirty"


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "")
    running.commit.cache_clear()
    assert running.commit() is None
    running.commit.cache_clear()


@pytest.mark.slow
def test_a_stored_run_is_verified_by_doing_its_beginning_again(small, folder, monkeypatch):
    runs = sweep(small, "full", ["main"])
    reproduce(runs, folder, progress=False)
    assert [verify(run, folder) for run in runs] == [None] * 6
    assert "is not stored" in verify(runs[0], folder / "elsewhere")
    step = SOLVERS["SOBA"].step
    monkeypatch.setattr(
        SOLVERS["SOBA"], "step", lambda self, problem, state: step(self, problem, state).replace(y=1.001 * state.y)
    )
    told = {run.label: verify(run, folder) for run in runs}
    assert told["FdeHBO"] is None
    assert told["SOBA"].startswith("main/SOBA_1: the code no longer gives its first rows")


def test_a_column_that_a_method_adds_late_is_no_difference(small, folder, monkeypatch):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    measure = SOLVERS["SOBA"].measure
    added = {"at": 20}

    def measures_late(self, problem, state):
        return measure(self, problem, state) | ({"late": 1.0} if state.t >= added["at"] else {})

    monkeypatch.setattr(SOLVERS["SOBA"], "measure", measures_late)
    reproduce([run], folder, progress=False)
    assert verify(run, folder) is None
    added["at"] = 5  # now the first rows have it too
    assert verify(run, folder) is not None
    monkeypatch.setattr(SOLVERS["SOBA"], "measure", lambda self, *given: measure(self, *given) | {"new": 1.0})
    assert verify(run, folder) is not None


def test_on_another_processor_a_thousandth_is_allowed(small, folder, monkeypatch):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    reproduce([run], folder, progress=False)
    path = folder / f"{run.name}.csv"
    monkeypatch.setattr(running, "facts_of", lambda run, folder: facts)
    facts = {"cpu": "another", "versions": {}}
    lines = path.read_text().splitlines()
    cells = lines[2].split(",")
    for factor, fine in ((1 + 5e-4, True), (1 + 5e-3, False)):
        lines[2] = ",".join([*cells[:-1], str(float(cells[-1]) * factor)])
        path.write_text("\n".join(lines) + "\n")
        assert (verify(run, folder) is None) == fine
    facts |= running.environment()
    facts["versions"]["bilevel_core"] = "0.2.0"  # a new version of the library excuses nothing
    lines[2] = ",".join([*cells[:-1], str(float(cells[-1]) * (1 + 5e-4))])
    path.write_text("\n".join(lines) + "\n")
    assert verify(run, folder) is not None
