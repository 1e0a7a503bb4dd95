"""Sweeps on a Dask cluster of real processes, some of them killed: every run is stored once, as one process does it."""

import sys

import pytest

import kills
from bilevel_book.__main__ import main
from bilevel_book.experiments import reproduce
from bilevel_core.checkpoint import write_atomically

pytest.importorskip("distributed", reason="needs requirements-cluster.txt: make test CLUSTER=1")


@pytest.mark.slow  # a cluster
def test_sweep_survives_kills(tmp_path):
    """A dozen kills of workers, scheduler and command; `python benchmarks/kills.py` does a hundred."""
    killed, again = kills.kill_in_sweeps(tmp_path, kills=12, seeds=3)
    assert killed == {"scheduler": 3, "worker 1": 3, "worker 2": 3, "command": 3}
    assert again < 1  # a kill costs the second since the last checkpoint, not the run


@pytest.mark.slow  # a cluster
def test_lost_scheduler_ends_the_command_and_loses_no_run(tmp_path, monkeypatch):
    runs = kills.sweep(tmp_path / "trace", seeds=2)
    with kills.Cluster() as cluster:
        kill = iter([lambda: cluster.kill("scheduler")])
        place = "bilevel_book.experiments.running.write_atomically"
        monkeypatch.setattr(place, lambda *given: (write_atomically(*given), next(kill, int)()))
        with pytest.raises(OSError, match=r"the scheduler at tcp://.* is gone; .* the same command goes on here"):
            reproduce(runs, tmp_path / "results", dask=cluster.address, progress=False)
    done = [run for run in runs if run.is_stored(tmp_path / "results")]
    assert done
    assert len(reproduce(runs, tmp_path / "results", progress=False)) == len(runs) - len(done)


def test_without_dask_the_command_says_what_to_install(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["reproduce", small, "--results", str(tmp_path / "results"), "--dask", "tcp://127.0.0.1:9"]) == 2
    assert 'pip install "bilevel-book[cluster]"' in capsys.readouterr().err
