"""What larger problems cost: the counts behind the page are those of the methods, and its tables follow from them."""

import doctest
import json
import re
from dataclasses import replace
from math import log10

import pandas as pd
import pytest
import torch
from torch.utils._pytree import tree_leaves

import costs
from bilevel_book import scale
from bilevel_book.methods import SOLVERS
from bilevel_core.counting import counting
from core.families import LogCosh

TEXT = scale.RESULTS.parent / "book" / "cluster.md"


class Passes(LogCosh):
    """Counts its losses: each is one forward pass, and every method here takes one backward pass of each."""

    passes = 0

    def upper(self, x, y, batch):
        self.passes += 1
        return super().upper(x, y, batch)

    def lower(self, x, y, batch):
        self.passes += 1
        return super().lower(x, y, batch)


@pytest.mark.parametrize("method", scale.methods(), ids=lambda method: method.name)
def test_passes_and_vectors_match_the_method(method):
    problem = Passes(dim_x=3, dim_y=7, noise=0.1)
    options = {name: value for name, value in {"inner": 1, "eta": 0.5}.items() if hasattr(SOLVERS[method.name], name)}
    solver = SOLVERS[method.name](**options)
    state = solver.init(problem)
    for _ in range(3):
        problem.passes = 0
        with counting() as calls:
            state = solver.step(problem, state)
    assert calls.Hv == calls.Jv
    assert method.passes == problem.passes + 2 * calls.Hv
    tensors = [leaf for leaf in tree_leaves([*vars(state).values()]) if isinstance(leaf, torch.Tensor)]
    kept = {tensor.data_ptr() for tensor in tensors if len(tensor) == 7}
    assert method.vectors == len(kept)


def test_cost_of_a_step_follows_from_operations_and_memory():
    method, machine = scale.Method("plain", 1, 1, 3.0), scale.Machine(bfloat16=1e12, dollars=2.0, memory=8e9)
    cost = scale.reweighting(1e9, method, machine, tokens=3)
    assert cost["operations"] == 6 * 1e9 * 3e9  # parameters times tokens, two forwards and four backwards
    assert cost["hours"] == cost["operations"] / 1e12 / 3600
    assert cost["dollars"] == 2 * cost["hours"]
    assert (cost["memory"], cost["devices"]) == (16e9, 2)
    slow = scale.reweighting(1e9, replace(method, differences=True), replace(machine, float32=1e11), tokens=3)
    assert slow["dollars"] == pytest.approx(10 * cost["dollars"])
    assert scale.reweighting(1e10, method, machine)["dollars"] == pytest.approx(
        100 * scale.reweighting(1e9, method, machine)["dollars"]
    )


def test_makespan_ends_with_the_last_run():
    assert [scale.makespan([1.0, 1.0, 5.0], workers) for workers in (1, 2, 9)] == [7, 6, 5]


def test_hours_match_the_stored_runs():
    *rows, total = [re.split(r" *\| *", line)[1:-1] for line in costs.hours().splitlines()[2:]]
    tables = [json.loads(path.read_text()) for path in scale.RESULTS.glob("rate/*.json")]
    stored = [run for table in tables for run in table["runs"]]
    rate = next(row for row in rows if row[0] == "rate")
    assert rate[1] == str(len(stored))
    assert float(rate[3]) == pytest.approx(sum(each["cpu_seconds"] for each in stored) / 3600, abs=0.005)
    assert float(total[3]) == pytest.approx(sum(float(row[3]) for row in rows), abs=0.005 * len(rows))
    for row in (*rows, total):
        one, two, *_, many = map(float, row[3:])
        assert one >= two >= one / 2 - 0.01
        assert many >= float(row[2]) / 60 - 0.01  # no sooner than the longest run


def test_memory_grows_in_proportion_to_parameters():
    """The slope of its logarithm over the last decade of sizes, where a few pages more or less no longer count."""
    table = pd.read_csv(scale.COST / "memory.csv")
    for _, rows in table.groupby(["problem", "method"]):
        first, last = rows.sort_values("parameters").iloc[[-2, -1]].itertuples()
        growth = log10((last.state + last.rise) / (first.state + first.rise))
        assert last.parameters / first.parameters == pytest.approx(10, rel=0.01)
        assert 0.96 <= round(growth, 2) <= 1  # as the page says


def test_example_on_the_cluster_page_runs():
    found = doctest.DocTestParser().get_doctest(TEXT.read_text(), {}, TEXT.name, None, 0)
    assert len(found.examples) == 4
    assert doctest.DocTestRunner().run(found).failed == 0


def test_cluster_page_agrees_with_its_tables():
    text = TEXT.read_text()
    assert sorted(re.findall(r"```\{costs\} (\w+)", text)) == sorted(costs.TABLES)
    towers = pd.read_csv(scale.COST / "memory.csv").query("problem == 'towers' and dim_x > 9e6").set_index("method")
    assert round(towers.times.FdeHBO) == 13  # a hundred megabytes need about 1.3 gigabytes
    activations = pd.read_csv(scale.COST / "activations.csv").set_index(["batch", "recompute"]).rise
    assert activations[512, True] < activations[512, False] / 2.5
    errors = pd.read_csv(scale.COST / "precision.csv").pivot(index="share", columns="arithmetic", values="error")
    assert (errors.float32.loc[1e-4:1e-2] < 0.002).all()
    exact, differences = errors.bfloat16[0], errors.bfloat16.loc[1e-4:]
    assert (differences < 0.1).sum() == 1
    assert 2 * exact < differences.min()
