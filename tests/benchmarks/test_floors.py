"""The floors of `make bench` do the work that they claim, and no method does less."""

import copy
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

import floors
import steps
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core.directions import exact

lenet, cleaning = cache(lambda: HyperRepresentation(batch_size=4)), cache(HyperCleaning)


def point(problem):
    """Some x, y and v, and a draw."""
    generator = torch.Generator().manual_seed(0)
    x, y = problem.start(generator)
    y, v = (torch.randn(y.shape, generator=generator, dtype=y.dtype) / 10 for _ in range(2))
    return x, y, v, problem.sample(generator)


class Flops(TorchDispatchMode):
    """Counts multiplications and additions of products and convolutions (torch's own counter hooks into modules)."""

    total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function.overloadpacket in flop_registry:
            self.total += flop_registry[function.overloadpacket](*args, **(kwargs or {}), out_val=out)
        return out


def flops(call) -> int:
    with Flops() as counter:
        call()
    return counter.total


@pytest.fixture
def few(monkeypatch):
    """Three steps, a period of VRBO, where `make bench` takes twelve for the sake of its clock."""
    monkeypatch.setattr(steps, "MANY", 3)


def flat(parts):
    return torch.cat([part.reshape(-1) for part in parts])


@pytest.mark.slow
def test_lenet_floor_computes_the_directions_of_soba():
    problem = lenet()
    x, y, v, samples = point(problem)
    floor = floors.LeNetFloor(problem, x, y, v)
    above, below = problem.upper_data, problem.lower_data
    f, g = floor.features(above, samples.upper), floor.features(below, samples.lower)
    *f_y, f_features = floor.gradient(f, above.targets[samples.upper])
    g_y, (*Hv, Jv_features) = floor.product(g, below.targets[samples.lower])
    d_x = flat(floor.through(f, f_features)) - flat(floor.through(g, Jv_features))
    for ours, theirs in zip((flat(g_y), flat(Hv) - flat(f_y), d_x), exact(problem, x, y, v, samples), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", floors.LENET)
def test_step_on_lenet_does_no_less_than_its_floor(few, name):
    problem = lenet()
    solver = steps.methods("hyper-representation")[name]
    floor = floors.LeNetFloor(problem, *point(problem)[:3])
    call, n, calls = steps.steps_of(name, solver, problem)
    assert 0 < flops(lambda: floor.run(n * floors.LENET[name](solver, calls["Hv"]))) <= flops(call)


@pytest.mark.slow
@pytest.mark.parametrize("name", floors.CLEANING)
def test_step_on_cleaning_does_no_less_than_its_floor(few, name):
    problem = copy.copy(cleaning())
    problem.batch_size = 10
    solver = steps.methods("hyper-cleaning")[name]
    solver = replace(solver, inner=3) if "inner" in vars(solver) else solver
    call, n, calls = steps.steps_of(name, solver, problem)
    least = n * floors.CLEANING[name](solver, calls["Hv"])
    done = flops(lambda: floors.CleaningFloor(problem, point(problem)[1]).run(least))
    sizes = (5_000, 20_000) if name in ("AID-FP", "reverse") else (10, 10)
    assert done == pytest.approx(
        sum(2 * 10 * 785 * size * (f + b) for size, (_, f, b) in zip(sizes, least, strict=True))
    )
    assert done <= flops(call)
