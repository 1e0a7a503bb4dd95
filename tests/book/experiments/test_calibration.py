"""Calibration: costs are medians of interleaved measurements, and they turn time into steps."""

import json
import math

import pytest

from bilevel_book.experiments import calibrate, calibration, load, reproduce, runs_of, sweep
from bilevel_core.problems import Quadratic

TIME = ("main = { steps = 40, seeds = [0, 1], every = 10 }", "main = { time = 6.0, seeds = [0, 1], every = 10 }")

MORE = """
[main.twice]
like = "SOBA"
problem = { batch_size = 100 }
[main.AID-FP]
full = true
"""


@pytest.fixture
def clock(monkeypatch):
    """A clock that a step of FdeHBO moves by .3 s, of SOBA by .1 s, a gradient by .01, H v by .02 and J v by .04 s."""
    now = {"time": 0.0, "factor": 1.0}

    def ticking(owner, name, seconds):
        real = getattr(owner, name)

        def call(*given, **options):
            now["time"] += seconds * now["factor"]
            return real(*given, **options)

        monkeypatch.setattr(owner, name, call)

    from bilevel_book.methods import SOLVERS

    for name, seconds in (("grad_y", 0.02), ("hessian_vector", 0.04), ("jacobian_vector", 0.08)):
        ticking(calibration, name, seconds)
    for name, seconds in (("SOBA", 0.1), ("FdeHBO", 0.3), ("AID-FP", 0.5)):
        ticking(SOLVERS[name], "step", seconds)
    monkeypatch.setattr(calibration.time, "process_time", lambda: now["time"])
    return now


@pytest.fixture
def timed(write):
    return write(TIME)


def test_missing_calibration_raises(timed):
    with pytest.raises(ValueError, match=r"small, main, FdeHBO: there is no calibrated cost of .*calibrate` first"):
        sweep(timed, "full", ["main"])
    assert sweep(timed, "full", ["quiet"])  # which has its steps


@pytest.mark.slow
def test_time_becomes_steps_and_is_read_back_as_time(timed, folder, clock):
    calibrate(timed, rounds=3, progress=False)
    stored = load(timed).calibration
    assert stored["prices"] == {"Hv": 2.0, "Jv": 4.0}
    assert {name: cost["median"] for name, cost in stored["steps"].items()} == {
        "main.FdeHBO": 0.3, "main.SOBA": 0.1, "main.FdeHBO, delta 1": 0.3, "main.FdeHBO, delta 1, alpha 0.3": 0.3,
    }  # fmt: skip
    runs = sweep(timed, "full", ["main"])
    assert {(run.label, run.budget["steps"]) for run in runs} == {("FdeHBO", 20), ("SOBA", 60), ("FdeHBO, delta 1", 20)}
    reproduce(runs, folder, progress=False)
    table = runs_of(timed, "main", folder)
    ends = table.groupby("label").last()
    assert ends.seconds.to_dict() == pytest.approx({"FdeHBO": 6.0, "SOBA": 6.0, "FdeHBO, delta 1": 6.0})
    assert (table.equivalents == table.gradients + 2 * table.Hv + 4 * table.Jv).all()
    assert table.equivalents.max() > 0
    assert "cpu_seconds" not in table


def test_later_methods_are_scaled_to_the_first_calibration(write, timed, clock):
    calibrate(timed, rounds=3, progress=False)
    clock["factor"] = 5.0  # another day, a slower machine
    another_name = '[main."SOBA, larger steps"]\nlike = "SOBA"\nalpha = 0.2\n\n'
    before = clock["time"]
    path = write(TIME, ("[tuning.FdeHBO]", f"{another_name}[tuning.FdeHBO]"))
    calibrate(path, rounds=3, progress=False)
    assert clock["time"] == before  # there was nothing to measure
    another_method = '[main."SOBA, larger y"]\nlike = "SOBA"\nproblem = { dim_y = 7 }\n\n'
    path = write(TIME, ("[tuning.FdeHBO]", f"{another_name}{another_method}[tuning.FdeHBO]"))
    calibrate(path, rounds=3, progress=False)
    assert clock["time"] > before
    medians = {name: cost["median"] for name, cost in load(path).calibration["steps"].items()}
    assert medians["main.SOBA"] == medians["main.SOBA, larger steps"] == 0.1
    assert medians["main.SOBA, larger y"] == pytest.approx(0.1)


def test_calibration_says_with_what_it_was_done(small):
    stored = json.loads(calibrate(small, rounds=2, progress=False).read_text())
    assert all(0 < cost["q1"] <= cost["median"] <= cost["q3"] for cost in stored["steps"].values())
    assert {"cpu", "versions", "commit", "threads", "rounds"} <= stored.keys()


@pytest.mark.slow
def test_equivalents_are_of_batches_of_one_size(write, folder, clock):
    """Of three methods with the same counts, one has twice the batch and one uses the whole data."""
    path = write(
        ('problem = "Quadratic"', f'problem = "{__name__}:Batched"'),
        ("options = { noise = 0.5 }", "options = { batch_size = 50 }"),
        ("problem = { noise = 0.0 }, ", ""),
        ("[main.SOBA]", f"{MORE}\n[main.SOBA]"),
    )
    calibrate(path, rounds=3, progress=False)
    reproduce(sweep(path, "full", ["main"]), folder, progress=False)
    ends = runs_of(path, "main", folder).groupby("label").equivalents.max()
    assert ends["twice"] == 2 * ends["SOBA"] > 0
    assert math.isnan(ends["AID-FP"])


class Batched(Quadratic):
    """Says how large its batches are, and does nothing with it."""

    def __init__(self, seed: int = 0, batch_size: int = 50):
        super().__init__(seed=seed, noise=0.5)
