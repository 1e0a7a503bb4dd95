"""Sweeps on a Dask cluster of real processes, some of them killed: every run is done once, as one process does it."""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from bilevel_book.experiments.storing import checkpoint_of

import kills
from bilevel_book.__main__ import main
from bilevel_book.experiments import is_stored, reproduce, sweep

cluster = pytest.importorskip("bilevel_book.experiments.cluster")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # those of Dask are its own
TESTS = Path(__file__).parents[2]


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


@pytest.fixture
def cast():
    with kills.Cast() as cast:
        yield cast


def test_workers_do_what_one_process_does_one_run_at_a_time(cast, tmp_path):
    runs = kills.sweep(tmp_path / "trace", seeds=2)
    assert reproduce(runs, tmp_path / "there", dask=cast.address, progress=False)
    drawn = kills.draws(tmp_path / "trace")
    assert drawn.keys() == {cast.running["worker 1"].pid, cast.running["worker 2"].pid}  # of two threads each
    assert "2" not in "".join(drawn.values())
    here = kills.sweep(tmp_path / "other trace", seeds=2, pause=0.0)
    reproduce(here, tmp_path / "here", progress=False)
    assert kills.content(tmp_path / "there") == kills.content(tmp_path / "here")
    slices = kills.total(tmp_path / "trace") - kills.total(tmp_path / "other trace")  # each has its problem tried first
    assert slices >= 2 * len(runs)


def test_kills_of_everybody_change_nothing(tmp_path):
    seen = kills.storm(tmp_path, kills=7, seeds=2)
    assert seen["kills"] == {"worker": 4, "command": 2, "scheduler": 1}


def test_a_run_goes_on_from_here_to_there_and_back(cast, tmp_path):
    """A checkpoint is one, whoever made it: of a command that was killed, of a slice, of a cluster that is gone."""
    (run, *_) = runs = kills.sweep(tmp_path / "trace", seeds=1, pause=0.05)
    folder = tmp_path / "results"
    for address in (None, cast.address, None):
        due = kills.total(tmp_path / "trace") + 15
        process = cast.start("command", kills.command, runs[:1], folder, address)
        wait_for(lambda due=due: checkpoint_of(run, folder).exists() and kills.total(tmp_path / "trace") > due)
        process.kill()
        process.join()
        assert not is_stored(run, folder)
    reproduce(runs[:1], folder, progress=False)
    assert kills.total(tmp_path / "trace") < 2 * kills.STEPS  # a beginning each time would be more
    reproduce(kills.sweep(tmp_path / "trace", seeds=1, pause=0.0)[:1], tmp_path / "straight", progress=False)
    assert kills.content(folder) == kills.content(tmp_path / "straight")


def test_two_commands_on_one_folder_share_the_work(cast, tmp_path):
    runs = kills.sweep(tmp_path / "trace", seeds=4)
    (run, *_) = kills.sweep(tmp_path / "alone", seeds=1, pause=0.0)
    reproduce([run], tmp_path / "one", progress=False)
    commands = [cast.start(f"command {k}", kills.command, runs, tmp_path / "both") for k in range(2)]
    for command in commands:
        command.join()
    assert all(is_stored(run, tmp_path / "both") for run in runs)
    drawn = kills.draws(tmp_path / "trace")
    assert drawn.keys() == {command.pid for command in commands}
    assert kills.total(tmp_path / "trace") == len(runs) * kills.total(tmp_path / "alone")


def test_what_another_command_is_at_is_taken_over_when_it_is_killed(cast, tmp_path):
    runs = kills.sweep(tmp_path / "trace", seeds=1, pause=0.02)
    other = cast.start("command", kills.command, runs, tmp_path / "both")
    wait_for(lambda: kills.total(tmp_path / "trace") > 5)
    survivor = cast.start("survivor", kills.command, runs, tmp_path / "both")
    wait_for(lambda: survivor.pid in kills.draws(tmp_path / "trace"))  # at the second run: the first has its owner
    other.kill()
    survivor.join()
    assert all(is_stored(run, tmp_path / "both") for run in runs)
    assert not [path for path in (tmp_path / "both").rglob("*") if path.suffix not in (".csv", ".json", "")]


def test_a_run_that_kills_its_workers_is_named(tmp_path):
    (run, *_) = kills.sweep(tmp_path / "trace", seeds=1)
    deadly = replace(run, problem="kills:Deadly", problem_options={})
    told = pytest.raises(BrokenExecutor, match=r"main/FdeHBO_0: every worker .* died")
    with kills.Cast(allowed_failures=0) as cast, told:
        reproduce([deadly], tmp_path / "results", dask=cast.address, progress=False)


def test_a_worker_with_other_code_is_refused(cast, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "library", lambda: "other")
    with pytest.raises(ValueError, match="has other code of bilevel_core: install there what is installed here"):
        reproduce(kills.sweep(tmp_path / "trace", seeds=1), tmp_path, dask=cast.address, progress=False)


@pytest.fixture
def short():
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}):
        yield


@pytest.mark.parametrize("address", ["127.0.0.1:1", "lokal"])
def test_an_address_where_nobody_answers_is_told(small, tmp_path, capsys, short, monkeypatch, address):
    monkeypatch.setattr(cluster, "Client", None)  # one that reaches nobody may lock the next one, so none is made
    assert main(["reproduce", small, "--results", str(tmp_path / "results"), "--dask", address]) == 2
    assert f"no Dask scheduler answers at {address}" in capsys.readouterr().err


def test_a_scheduler_that_does_not_come_back_is_told(cast, tmp_path):
    runs = kills.sweep(tmp_path / "trace", seeds=1)
    with cluster.connected(cast.address, 1, progress=False) as pool:
        pool.args[0]._timeout = 0.5  # seconds for which the client looks for a lost scheduler, instead of 30
        (first, _) = next(done := pool(runs, tmp_path / "results"))
        cast.kill("scheduler")
        assert list(done) == []
        with pytest.raises(OSError, match=r"scheduler is gone; .* the same command goes on from here"):
            wait_for(lambda: list(pool(runs, tmp_path / "results")))
    assert [run for run in runs if is_stored(run, tmp_path / "results")] == [first]


def test_without_dask_it_is_told_what_to_install(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "bilevel_book.experiments.cluster")
    assert main(["reproduce", small, "--results", str(tmp_path / "results"), "--dask", "local"]) == 2
    assert 'pip install "bilevel-core[cluster]"' in capsys.readouterr().err


def test_a_cluster_on_this_machine_shows_its_dashboard_and_ends_with_its_command(write, tmp_path):
    gate = tmp_path / "gate"
    path = write(
        ('problem = "Quadratic"', 'problem = "core.experiments.waiting:Waiting"'),
        ("options = { noise = 0.5 }", f'options = {{ gate = "{gate}", after = 25 }}'),
    )
    command = [sys.executable, "-m", "bilevel_book", "reproduce", path, "--dask", "local", "--jobs", "99"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    told = process.stderr.readline()
    address = re.fullmatch(r"3 Dask workers, dashboard: (http://127.0.0.1:\d+)/status\n", told)  # for three runs
    assert address, told
    assert urlopen(f"{address[1]}/health").read() == b"ok"
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 3
    process.kill()
    process.wait()
    process.stderr.close()
    assert kills.ended(family)
    gate.touch()
    runs = sweep(path, "smoke")
    assert len(reproduce(runs, tmp_path / "results" / "small" / "smoke", progress=False)) == 3
