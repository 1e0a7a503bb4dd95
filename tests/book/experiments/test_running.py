"""Sweeps: each run is done once, wherever it is done and however often it was interrupted."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import kills
from bilevel_book.experiments import read, reproduce, runs_of, sweep
from bilevel_book.experiments.running import perform
from bilevel_book.methods import SOLVERS

BENCHMARKS = Path(kills.__file__).parent


def tables(folder):
    """Every CSV, byte for byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.csv"))}


def left_in_scratch(folder):
    return [path.name for path in (folder / ".scratch").rglob("*") if path.is_file() and path.name != "main.lock"]


def test_stored_runs_are_not_done_again(write, folder):
    runs = sweep(write(), "smoke")
    assert reproduce(runs, folder, progress=False) == runs
    assert reproduce(runs, folder, progress=False) == []
    assert left_in_scratch(folder) == []


def test_other_settings_replace_stored_runs_only_when_asked(write, folder):
    reproduce(sweep(write(), "smoke"), folder, progress=False)
    before = tables(folder)
    changed = sweep(write(("[0.1, 0.01]", "[0.2, 0.01]")), "smoke")
    told = r"1 of 3 runs .*other settings .*the first is main/SOBA_0: .*--replace"
    with pytest.raises(ValueError, match=told):
        reproduce(changed, folder, progress=False)
    assert tables(folder) == before
    assert [run.label for run in reproduce(changed, folder, replace=True, progress=False)] == ["SOBA"]
    assert tables(folder) != before
    assert all(run.is_stored(folder) for run in changed)


def test_damaged_rows_are_done_again_when_asked(small, folder):
    runs = sweep(small, "smoke")
    reproduce(runs, folder, progress=False)
    path, before = folder / "small" / "main.csv", tables(folder)
    path.write_text(path.read_text().replace("SOBA,0,20", "SOBA,0,21"))
    with pytest.raises(ValueError, match="damaged rows"):
        reproduce(runs, folder, progress=False)
    assert reproduce(runs, folder, replace=True, progress=False) == runs[1:2]
    assert tables(folder) == before


def test_runs_of_some_labels_join_the_table(small, folder):
    runs = sweep(small, "smoke")
    for run in (runs[2], runs[0]):
        reproduce([run], folder, progress=False)
    assert set(read(small, "main", folder).label) == {"FdeHBO", "FdeHBO, delta 1"}
    reproduce(runs, folder, progress=False)
    assert list(read(small, "main", folder).label.unique()) == [run.label for run in runs]  # the order of the plan


@pytest.mark.slow  # two processes
def test_two_processes_give_the_tables_of_one(small, folder):
    runs = sweep(small, "full")
    reproduce(runs, folder / "one", progress=False)
    reproduce(runs, folder / "two", jobs=2, progress=False)
    assert tables(folder / "one") == tables(folder / "two")


def test_interrupted_run_resumes_to_the_same_history(small, folder, monkeypatch):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    steps = iter(range(13))

    def step(self, problem, state, real=SOLVERS["SOBA"].step):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return real(self, problem, state)

    with monkeypatch.context() as patch:
        patch.setattr(SOLVERS["SOBA"], "step", step)
        with pytest.raises(KeyboardInterrupt):
            reproduce([run], folder, progress=False)
    assert not run.is_stored(folder)
    (checkpoint,) = folder.rglob("*.ckpt")
    copy = folder / "another" / checkpoint.relative_to(folder)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(checkpoint.read_bytes()[:-1])  # damaged, so that the run starts anew
    for place in (folder, folder / "another"):
        assert reproduce([run], place, progress=False) == [run]  # the lock went with the one who was interrupted
        assert run.stored_in(place).history == perform(run).history
        assert left_in_scratch(place) == []


def test_finished_runs_of_a_killed_command_are_collected(small, folder, monkeypatch):
    runs = sweep(small, "smoke")
    with monkeypatch.context() as patch:
        patch.setattr("bilevel_book.experiments.running.collect", lambda *_: None)  # as if killed before
        patch.setattr("bilevel_book.experiments.running.Run.is_stored", lambda *_: False)
        reproduce(runs[:2], folder, progress=False)
    assert not tables(folder)
    assert reproduce(runs, folder, progress=False) == runs[2:]
    assert list(read(small, "main", folder).label.unique()) == [run.label for run in runs]
    assert left_in_scratch(folder) == []


def test_diverged_run_is_a_result(write, folder):
    path = write(("[main.SOBA]", "[main.SOBA]\nbeta = 1e30"))
    reproduce(sweep(path, "full", ["main"]), folder, progress=False)
    table = runs_of(path, "main", folder).query("label == 'SOBA'")
    assert set(table.stop) == {"diverged"}
    assert (table.diverged_at > 0).all()
    assert table.groupby("seed").objective.last().notna().all()  # `last` skips the missing one
    assert table[table.step == table.diverged_at].objective.isna().all()


@pytest.mark.slow  # three processes
def test_killed_sweep_goes_on(tmp_path, folder):
    """kill -9 while two workers run, then the same sweep again: the table is that of a sweep that was left alone."""
    script = textwrap.dedent(f"""
        import pathlib
        import kills
        from bilevel_book.experiments import reproduce
        reproduce(kills.sweep(pathlib.Path({str(tmp_path / "trace")!r})), pathlib.Path({str(folder)!r}), jobs=2)
    """)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": environment}
    process = subprocess.Popen([sys.executable, "-c", script], **given)
    while len(list(folder.rglob("*.ckpt"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)  # until the last worker has let go of stdout: each is in the middle of a run
    assert not list(folder.rglob("*.csv"))
    runs = kills.sweep(tmp_path / "trace")
    reproduce(runs, folder, progress=False)
    assert kills.draws(tmp_path / "trace") < 1.5 * sum(run.budget["steps"] for run in runs)
    straight = kills.sweep(tmp_path / "straight trace", pause=0.0)
    reproduce(straight, folder / "straight", progress=False)
    assert tables(folder / "kills") == tables(folder / "straight")
