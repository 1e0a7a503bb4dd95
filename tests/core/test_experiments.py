"""Sweeps: what a file says is what is run, once, and stored whole."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pandas as pd
import pytest
import torch

from bilevel_core import SOLVERS, FdeHBO, experiments
from bilevel_core.__main__ import main
from bilevel_core.experiments import is_stored, load, paper_settings, perform, read, reproduce, store, sweep
from bilevel_core.schedules import Power, Steps

TIMES = ["cpu_seconds", "wall_seconds"]
FILE = """
problem = "Quadratic"
options = { noise = 0.5 }

[sizes.smoke]
main = { steps = 20, seeds = [0], every = 5 }

[sizes.full]
tuning = { steps = 10, seeds = [7], grid = true }
main = { steps = 40, seeds = [0, 1], every = 10 }
quiet = { methods = "main", only = ["SOBA"], problem = { noise = 0.0 }, steps = 10, seeds = [3] }

[main.FdeHBO]
alpha = 0.05
eta = { c = 1.0, w = 7.0, p = 0.5, cap = 1.0 }
r_v = inf

[main.SOBA]
alpha = { values = [0.1, 0.01], at = [5] }

[main."FdeHBO, delta 1"]
like = "FdeHBO"
delta = 1.0

[tuning.FdeHBO]
like = "FdeHBO"
alpha = [0.01, 0.1]
beta = [0.2, 0.3, 0.4]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of experiments that holds a small one, and where its results go."""
    (tmp_path / "small.toml").write_text(FILE)
    monkeypatch.setattr(experiments, "_folder", lambda: tmp_path)
    return tmp_path / "results"


def content(folder):
    """Every CSV, without its clocks."""
    return {p.name: pd.read_csv(p).drop(columns=TIMES) for p in sorted(folder.rglob("*.csv"))}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        pd.testing.assert_frame_equal(a[name], b[name], check_exact=True)


def test_a_sweep_is_what_the_file_says(folder):
    runs = sweep("small", "full")
    assert [(r.group, r.label, r.seed) for r in runs if r.group == "main"] == [
        ("main", label, seed) for seed in (0, 1) for label in ("FdeHBO", "SOBA", "FdeHBO, delta 1")
    ]
    changed = next(r for r in runs if r.label == "FdeHBO, delta 1")
    assert changed.make_solver() == FdeHBO(alpha=0.05, eta=Power(1.0, 7.0, 0.5, 1.0), r_v=float("inf"), delta=1.0)
    assert next(r for r in runs if r.label == "SOBA").make_solver().alpha == Steps((0.1, 0.01), (5,))
    grid = [r for r in runs if r.group == "tuning"]
    assert [(r.options["alpha"], r.options["beta"]) for r in grid] == [
        (a, b) for a in (0.01, 0.1) for b in (0.2, 0.3, 0.4)
    ]
    (quiet,) = (r for r in runs if r.group == "quiet")
    assert (quiet.problem_options, quiet.seed, quiet.budget) == ({"noise": 0.0}, 3, {"steps": 10})


def test_filters_keep_what_they_name(folder):
    assert {(r.group, r.label) for r in sweep("small", "full", ["main"], ["SOBA"])} == {("main", "SOBA")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("big", "full"), "unknown experiment 'big'; known are small"),
        (("small", "huge"), "no size 'huge'; it has smoke, full"),
        (("small", "smoke", ["tuning"]), "no group 'tuning'; it has main"),
        (("small", "full", None, ["Sova"]), "labelled 'Sova'"),
    ],
)
def test_a_name_that_is_not_there_is_refused(folder, given, message):
    with pytest.raises(ValueError, match=message):
        sweep(*given)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha = 0.05", "alfa = 0.05", "unknown option of FdeHBO: alfa"),
        ("alpha = 0.05", "alpha = -1.0", "alpha must be a positive number, got -1.0"),
        ("noise = 0.5", "nose = 0.5", "Quadratic has no nose"),
        ("steps = 40", "stepts = 40", "unknown stepts"),
        ('"FdeHBO, delta 1"', '"FdeHBO."', None),
    ],
)
def test_a_wrong_file_is_refused_before_any_run(folder, old, new, message):
    path = folder.parent / "small.toml"
    path.write_text(FILE.replace(old, new))
    if message is None:
        path.write_text(FILE.replace('"FdeHBO, delta 1"', '"FdeHBO "'))
        message = "would be stored as main/FdeHBO_0"
    with pytest.raises(ValueError, match=message):
        sweep("small", "full")


def test_every_run_is_stored_with_all_that_is_known_of_it(folder):
    runs = sweep("small", "full", ["main"])
    assert len(reproduce(runs, folder, progress=False)) == 6
    about = json.loads((folder / "main" / "FdeHBO_delta_1_1.json").read_text())
    assert about["run"]["options"]["delta"] == 1.0
    assert about["run"]["options"]["r_v"] == "inf"
    assert about["run"]["seed"] == 1
    assert (about["stop"], about["steps"], about["threads"]) == ("steps", 40, 1)
    assert about["versions"]["torch"] == torch.__version__
    assert about["cpu"]
    assert about["wall_seconds"] > 0
    history = pd.read_csv(folder / "main" / "FdeHBO_delta_1_1.csv")
    assert list(history.step) == [0, 10, 20, 30, 40]
    assert not list(folder.rglob("*.ckpt"))


def test_what_is_there_is_not_done_again_unless_its_settings_changed(folder):
    runs = sweep("small", "full", ["main"])
    reproduce(runs, folder, progress=False)
    assert reproduce(runs, folder, progress=False) == []
    path = folder.parent / "small.toml"
    path.write_text(FILE.replace("delta = 1.0", "delta = 0.5"))
    assert {run.label for run in reproduce(sweep("small", "full", ["main"]), folder, progress=False)} == {
        "FdeHBO, delta 1"
    }


def test_side_by_side_gives_what_one_by_one_gives(folder):
    runs = sweep("small", "full")
    reproduce(runs, folder / "one", jobs=1, progress=False)
    reproduce(runs, folder / "two", jobs=2, progress=False)
    assert_same(content(folder / "one"), content(folder / "two"))


@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_what_one_process_gives(folder):
    distributed = pytest.importorskip("distributed")
    runs = sweep("small", "full", ["main"])
    reproduce(runs, folder / "one", progress=False)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster:
        done = reproduce(runs, folder / "dask", dask=cluster.scheduler_address, progress=False)
    assert len(done) == 6
    assert_same(content(folder / "one"), content(folder / "dask"))


def test_an_interrupted_run_resumes_to_the_same_history(folder, monkeypatch):
    (one,) = sweep("small", "smoke", labels=["SOBA"])
    straight = perform(one, str(folder / "straight"))[1]
    steps = iter(range(13))

    def step(self, problem, state, real=SOLVERS["SOBA"].step):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return real(self, problem, state)

    with monkeypatch.context() as patch:
        patch.setattr(SOLVERS["SOBA"], "step", step)
        with pytest.raises(KeyboardInterrupt):
            perform(one, str(folder))
    assert not is_stored(one, folder)
    _, history, about = perform(one, str(folder))
    pd.testing.assert_frame_equal(history.drop(columns=TIMES), straight.drop(columns=TIMES), check_exact=True)
    store(one, history, about, folder)
    assert is_stored(one, folder)


def test_a_killed_sweep_goes_on(folder, tmp_path):
    """kill -9 while two workers run, then the same sweep again: the files are those of a sweep that was left alone."""
    (tmp_path / "small.toml").write_text(
        FILE.replace("steps = 40, seeds = [0, 1], every = 10", "steps = 400, seeds = [0, 1], every = 50")
    )
    script = textwrap.dedent(f"""
        import pathlib
        from bilevel_core import experiments
        experiments._folder = lambda: pathlib.Path({str(tmp_path)!r})
        experiments.reproduce(experiments.sweep("small", "full", ["main"]), pathlib.Path({str(folder)!r}), jobs=2)
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 120
    while len(list(folder.rglob("*.ckpt"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    runs = sweep("small", "full", ["main"])
    assert list(folder.rglob("*.ckpt"))
    assert reproduce(runs, folder, progress=False)
    reproduce(runs, folder / "straight", progress=False)
    assert_same(content(folder / "main"), content(folder / "straight" / "main"))


def test_a_diverged_run_is_a_result(folder):
    path = folder.parent / "small.toml"
    path.write_text(
        FILE.replace("alpha = 0.05", "alpha = 1e30").replace("[main.SOBA]\nalpha", "[main.SOBA]\nbeta = 1e30\nalpha")
    )
    reproduce(sweep("small", "full", ["main"], ["SOBA"]), folder / "small" / "full", progress=False)
    table = read("small", folder=folder)
    assert set(table.stop) == {"diverged"}
    assert (table.diverged_at > 0).all()
    assert table.groupby("seed").objective.last().notna().all()  # `last` skips the missing one
    assert table[table.step == table.diverged_at].objective.isna().all()


def test_the_command_line_runs_reports_and_explains(folder, capsys):
    assert main(["reproduce", "small", "--results", str(folder)]) == 0
    assert "3 runs done, 0 were there already" in capsys.readouterr().out
    assert main(["reproduce", "small", "--results", str(folder)]) == 0
    assert "0 runs done, 3 were there already" in capsys.readouterr().out
    assert main(["reproduce", "great", "--results", str(folder)]) == 2
    assert "unknown experiment 'great'; known are small" in capsys.readouterr().err
    assert main(["reproduce", "small", "--jobs", "0", "--results", str(folder)]) == 2
    assert "--jobs must be at least 1, got 0" in capsys.readouterr().err
    assert main(["report", "small", "--results", str(folder)]) == 2
    assert "run `python -m bilevel_core reproduce small --size full` first" in capsys.readouterr().err


@pytest.mark.parametrize("name", experiments.names())
def test_the_experiments_of_the_book_are_well_formed(name):
    for size in load(name)["sizes"]:
        assert sweep(name, size)


def test_the_settings_of_the_paper_for_fdehbo():
    assert paper_settings("hyper-representation", "FdeHBO") == {
        "alpha": 0.008, "beta": 0.8, "lam": 0.05, "eta": 0.9, "delta": 0.1, "r_v": 10.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="has no 'SOBA'; it compares 'FdeHBO', 'FdeHBO, tuned', 'PZOBO-S'"):
        paper_settings("hyper-representation", "SOBA")


def test_the_settings_of_the_paper_for_hyper_cleaning():
    """What the appendix states: steps, inner loops, the series; a decaying eta for FMBO."""
    settings = {name: paper_settings("hyper-cleaning", name) for name in load("hyper-cleaning")["main"]}
    steps = {name: (given["alpha"], given["beta"]) for name, given in settings.items()}
    assert steps.pop("FMBO") == (0.3, 0.3)
    assert steps.pop("SUSTAIN") == (0.1, 0.03)
    steps.pop("alternating")  # not of the paper
    assert set(steps.values()) == {(0.1, 0.1)}
    assert len(steps) == 9
    assert {name: given["inner"] for name, given in settings.items() if "inner" in given} == {
        "stocBiO": 200, "AID-FP": 200, "reverse": 200, "BSA": 200, "AmIGO": 200, "VRBO": 20,
    }  # fmt: skip
    assert {given["eta_series"] for given in settings.values() if "eta_series" in given} == {0.5}
    assert {given[name] for given in settings.values() for name in ("Q", "K") if name in given} == {3}
    eta = settings["FMBO"]["eta"]
    assert eta(10**6) < eta(10**4) < eta(2000) < 1
    batch = {run.label: run.problem_options.get("batch_size") for run in sweep("hyper-cleaning", "full", ["main"])}
    assert {name: batch[name] for name in ("FMBO", "MRBO", "stocBiO")} == {"FMBO": 100, "MRBO": 1000, "stocBiO": 1000}
    assert batch["VRBO"] * settings["VRBO"]["large"] == 500
    assert settings["VRBO"]["period"] == 3
    assert {run.problem_options["C"] for run in sweep("hyper-cleaning", "full")} == {0.001}
