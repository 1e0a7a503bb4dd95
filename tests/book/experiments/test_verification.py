"""Verifying: the beginning of a stored run done again must be the same text, elsewhere the same numbers."""

import hashlib
from contextlib import nullcontext

import pytest

from bilevel_book.experiments import reproduce, sweep, verification, verify
from bilevel_book.experiments.environment import environment
from bilevel_book.experiments.tables import StoredRun, table_file, write_table
from bilevel_book.experiments.verification import Comparison, verify_all
from bilevel_book.methods import SOLVERS


@pytest.fixture
def run(small, folder):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    reproduce([run], folder, progress=False)
    return run


def test_stored_rows_that_the_code_gives_agree(run, folder):
    assert verify(run, folder) == Comparison(1)
    assert verify(run, folder, rows=3) == Comparison(3)
    assert verify(run, folder, rows=99) == Comparison(4)  # it has no more
    assert verify(run, folder / "elsewhere").mismatch.startswith("main/SOBA_0 is not stored in")


def test_no_more_workers_are_started_than_there_are_runs(run, folder, monkeypatch):
    asked = []
    monkeypatch.setattr(verification, "worker_processes", lambda jobs: asked.append(jobs) or nullcontext())
    assert verify_all([run], folder, rows=2, jobs=40) == [Comparison(2)]
    assert asked == [1]


def test_other_code_is_seen(run, folder, monkeypatch):
    monkeypatch.setattr(SOLVERS["SOBA"], "measure", lambda self, problem, state: {"norm_v": 1.001 * state.v.norm()})
    assert verify(run, folder).mismatch.startswith("main/SOBA_0: the code gives other rows than are stored\nstep,")


def test_column_that_a_method_adds_late_is_no_difference(small, folder, monkeypatch):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    measure, added = SOLVERS["SOBA"].measure, {"at": 20}

    def measures_late(self, problem, state):
        return measure(self, problem, state) | ({"late": 1.0} if state.t >= added["at"] else {})

    monkeypatch.setattr(SOLVERS["SOBA"], "measure", measures_late)
    reproduce([run], folder, progress=False)
    assert not verify(run, folder).mismatch
    added["at"] = 5  # now the first rows have it too
    assert verify(run, folder).mismatch


@pytest.mark.parametrize(
    ("elsewhere", "factor", "agrees"), [(True, 1 + 5e-4, True), (True, 1 + 5e-3, False), (False, 1 + 5e-4, False)]
)
def test_another_processor_may_differ_by_a_thousandth(run, folder, elsewhere, factor, agrees):
    found = run.stored_in(folder)
    lines = found.history.splitlines()
    *cells, last = lines[2].split(",")
    lines[2] = ",".join([*cells, f"{float(last) * factor:.6g}"])
    history = "\n".join(lines) + "\n"
    here = environment()
    versions = here["versions"] | {"bilevel_core": "0.2.0"}  # a new version of the library excuses nothing
    facts = found.facts | {"versions": versions, "cpu": "another" if elsewhere else here["cpu"]}
    facts["sha256"] = hashlib.sha256(history.encode()).hexdigest()
    write_table([StoredRun(history, facts)], table_file(folder, "small", "main"))
    assert (not verify(run, folder).mismatch) == agrees
