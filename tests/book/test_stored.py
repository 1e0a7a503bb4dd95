"""The results that come with the book: all of them, and nothing else."""

import hashlib
import json
import random
from datetime import date

import pytest
from bilevel_book.stored import SIZE

from bilevel_book.experiments import names, sweep, verify
from bilevel_book.paths import RESULTS

MEASURED = ("table", "scaling", "slopes", "rejected", "memory", "activations", "precision", "sweeps")
COSTS = {f"cost/{name}.{end}" for name in MEASURED for end in ("csv", "json")}
BASELINES = {f"hyper-cleaning/baselines/{seed}.{end}" for seed in range(5) for end in ("csv", "json")}
OTHERS = {"released/recorded.csv"} | COSTS | BASELINES  # ends of runs of the released code; what `make bench` measured


@pytest.mark.slow
def test_every_file_is_that_of_a_run():
    files = {
        str(path.relative_to(RESULTS)) for path in RESULTS.rglob("*") if path.is_file() and "smoke" not in path.parts
    }
    runs = {f"{name}/{SIZE}/{run.name}" for name in names() for run in sweep(name, SIZE)}
    expected = {f"{run}.{end}" for run in runs for end in ("csv", "json")} | OTHERS
    assert {file for file in files if ".ckpt" not in file} == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_run_names_its_commit_and_vouches_for_its_rows(name):
    """A tree without changes wrote it, and not a row was touched since."""
    for path in (RESULTS / name).rglob("*/*/*.json"):
        facts = json.loads(path.read_text())
        assert len(facts["commit"]) == 40, path
        assert facts["sha256"] == hashlib.sha256(path.with_suffix(".csv").read_bytes()).hexdigest(), path


@pytest.mark.slow
def test_stored_runs_are_what_the_code_gives():
    """The beginning of six of them, others every day; `python -m bilevel_book verify NAME` does all."""
    runs = [(run, RESULTS / name / SIZE) for name in names() for run in sweep(name, SIZE)]
    chosen = random.Random(str(date.today())).sample(runs, 6)
    wrong = [told for run, folder in chosen if (told := verify(run, folder))]
    assert not wrong, "\n".join(wrong)
