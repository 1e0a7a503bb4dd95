"""A checkpoint is refused to any other run, and whole or not accepted."""

import importlib
import os
import random
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bilevel_core import FMBO, SOBA, FdeHBO, checkpoint, from_modules, run
from bilevel_core.checkpoint import rows_of, write_atomically
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power, Steps
from core.test_runner import Drifting, Ticking, interrupt, quadratic, same_history, same_state


def saved(path, problem=None, solver=None, seed=0, steps=3, **options):
    return run(problem or quadratic(), solver or FMBO(), seed, steps=steps, progress=False, checkpoint=path, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def rate(c):
    return lambda t: c / (1 + t)


def networks(ridge=0.1, shift=0.0, batch_size=5, frozen=0.0):
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(20, 3, generator=generator), torch.randn(20, 1, generator=generator)
    outer = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    for parameter in outer.parameters():
        nn.init.constant_(parameter, 0.1)
    outer.register_buffer("offset", torch.tensor(frozen))
    inner = nn.Linear(2, 1)
    nn.init.constant_(inner.weight, 0.2)
    nn.init.constant_(inner.bias, 0.0)
    return from_modules(
        outer, inner, nn.functional.mse_loss, data, (data[0] + shift, data[1]), batch_size=batch_size, ridge=ridge
    )


class Mine(Quadratic):
    """A problem with what problems may hold."""

    def __init__(self, **held):
        super().__init__(noise=0.5)
        self.__dict__ |= {
            "settings": {"a": [1, 2.0], "b": {"x", "y"}},
            "array": np.arange(3.0),
            "scale": rate(1.0),
        } | held


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({}, {"seed": 1}, "its seed is 0, now it is 1"),
        ({}, {"solver": FMBO(r_v=3.0)}, "its solver's r_v is 100.0, now it is 3.0"),
        ({}, {"solver": SOBA()}, "its solver is 'FMBO', now it is 'SOBA'"),
        ({}, {"solver": FMBO(eta=Power(0.5))}, "its solver's eta is Power(c=1.0, w=7.0"),
        ({"solver": FMBO(eta=rate(1.0))}, {"solver": FMBO(eta=rate(0.5))}, "its solver's eta"),
        (
            {"solver": FMBO(eta=Steps((1.0, 0.5), (300,)))},
            {"solver": FMBO(eta=Steps((1.0, 0.5), (400,)))},
            "its solver's eta is Steps(values=(1.0, 0.5), at=(300,))",
        ),
        ({}, {"problem": Quadratic(noise=0.25)}, "its problem's noise is 0.5, now it is 0.25"),
        ({}, {"problem": Quadratic(noise=0.5, rho=5.0)}, "its problem's rho is 0.5, now it is 5.0"),
        ({}, {"problem": Quadratic(noise=0.5, seed=1)}, "its start is list with the digest"),
        ({}, {"problem": Quadratic(noise=0.5, dim_x=4)}, "its start is"),
        ({}, {"problem": Ticking()}, "its problem is 'Quadratic', now it is 'Ticking'"),
        ({}, {"best": "objective"}, "its best is None, now it is objective"),
        ({"problem": networks()}, {"problem": networks(ridge=0.2)}, "its problem's ridge is 0.1, now it is 0.2"),
        ({"problem": networks()}, {"problem": networks(shift=1e-6)}, "its problem's lower_data"),
        ({"problem": networks()}, {"problem": networks(batch_size=6)}, "_size is 5, now it is 6"),
        ({"problem": networks()}, {"problem": networks(frozen=0.1)}, "its problem's outer"),
        ({"problem": Mine()}, {"problem": Mine(settings={"a": [1, 2.5], "b": {"x", "y"}})}, "its problem's settings"),
        ({"problem": Mine()}, {"problem": Mine(array=np.array([0.0, 1.0, 3.0]))}, "its problem's array"),
        ({"problem": Mine()}, {"problem": Mine(scale=rate(2.0))}, "its problem's scale"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(path, first, second, words):
    saved(path, **first)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"run.ckpt is no checkpoint of this run .*; move it away to start anew"
    ) as caught:
        saved(path, **first | second)
    assert words in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [networks, Mine, quadratic])
def test_the_same_run_is_recognised_when_all_is_made_anew(path, make):
    for steps in (3, 6):
        resumed = saved(path, make(), FMBO(eta=rate(1.0), lam=rate(0.5)), steps=steps, every=3)
    assert same_state(resumed.state, run(make(), FMBO(eta=rate(1.0), lam=rate(0.5)), steps=6, progress=False).state)


class Counting(Quadratic):
    """Counts its draws in public."""

    drawn = 0

    def sample(self, generator):
        self.drawn += 1
        return super().sample(generator)


def test_a_number_that_counts_is_no_part_of_a_run(path):
    problem = Counting(noise=0.5)
    for steps in (3, 6):  # the same problem, which has counted on
        resumed = saved(path, problem, steps=steps, every=3)
    assert same_state(resumed.state, run(quadratic(), FMBO(), steps=6, progress=False).state)


OUTSIDE = {"c": 1.0}


def test_a_schedule_that_takes_its_constant_from_outside_is_known_by_its_values(path, monkeypatch):
    solver = FMBO(eta=lambda t: OUTSIDE["c"] / (1 + t))
    saved(path, solver=solver)
    saved(path, solver=solver)
    monkeypatch.setitem(OUTSIDE, "c", 0.5)
    with pytest.raises(ValueError, match=r"its solver's eta, in time is .*1.0, 0.5, .*now it is .*0.5, 0.25, "):
        saved(path, solver=solver)


SOURCE = """
from bilevel_core.problems import Quadratic
class Other(Quadratic):
    def evaluate(self, x, y):
        return {"norm": (FACTOR * (y @ y)).item()}
"""


def test_the_code_of_a_class_is_part_of_a_run(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)
    for factor, name in (("1", "one"), ("1", "one"), ("2", "two")):
        (path.parent / f"{name}.py").write_text(SOURCE.replace("FACTOR", factor))
        problem = importlib.import_module(name).Other()
        if factor == "1":
            saved(path, problem)
    with pytest.raises(ValueError, match="its problem's source is list with the digest"):
        saved(path, problem)


def test_the_code_of_the_library_is_part_of_a_run(path, monkeypatch):
    saved(path)
    monkeypatch.setattr(checkpoint, "library", lambda: "another")
    with pytest.raises(ValueError, match=r"its library's source is list with the digest .*, now it is another"):
        saved(path)


def test_the_source_of_the_library_is_read(tmp_path, monkeypatch):
    """What computes is part of a run; the experiments are not."""
    package = tmp_path / "bilevel_core"
    (package / "experiments").mkdir(parents=True)
    codes = []
    for name, text in (("a.py", "1"), ("experiments/b.py", "2"), ("a.py", "3")):
        (package / name).write_text(text)
        monkeypatch.setattr(checkpoint, "__file__", str(package / "checkpoint.py"))
        codes.append(checkpoint.library.__wrapped__())
    assert codes[0] == codes[1] != codes[2]


def test_fewer_steps_than_a_checkpoint_has_are_refused(path):
    saved(path, steps=20)
    with pytest.raises(ValueError, match=r"run.ckpt is of a longer run \(it has 20 steps, more than the 9 asked for\)"):
        saved(path, steps=9)
    with pytest.raises(ValueError, match=r"more than the 1e-09 asked for"):
        run(quadratic(), FMBO(), seconds=1e-9, progress=False, checkpoint=path)
    assert saved(path, steps=20).state.t == 20
    assert saved(path, steps=30).state.t == 30


def test_a_budget_that_was_overshot_by_a_step_is_a_finished_run(path):
    options = {"gradients": 31, "progress": False, "checkpoint": path}
    first, again = (run(quadratic(), SOBA(), **options) for _ in range(2))
    assert first.history.gradients.iloc[-1] + first.history.Hv.iloc[-1] + first.history.Jv.iloc[-1] == 35
    assert same_history(first.history, again.history)


@pytest.mark.slow
def test_any_flipped_bit_is_noticed(path):
    saved(path, steps=6, every=1)
    files, generator = {p: p.read_bytes() for p in (path, rows_of(path))}, random.Random(0)
    for _ in range(100):
        place = generator.choice([*files])
        bit = generator.randrange(8 * len(files[place]))
        damaged = bytearray(files[place])
        damaged[bit // 8] ^= 1 << bit % 8
        place.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"is no checkpoint of this run .*checksum does not fit"):
            saved(path, steps=6, every=1)
        place.write_bytes(files[place])
    assert saved(path, steps=6, every=1).state.t == 6


@pytest.mark.parametrize("size", [0, 1, 30, 100, 1000])
def test_a_truncated_checkpoint_is_named(path, size):
    saved(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"run.ckpt is no checkpoint of this run .*move it away"):
        saved(path)


def test_a_missing_field_or_file_is_named(path):
    saved(path)
    content, _ = checkpoint.read(path)
    for field in content:
        buffer = checkpoint.io.BytesIO()
        torch.save({name: value for name, value in content.items() if name != field}, buffer)
        data = buffer.getvalue()
        path.write_bytes(checkpoint.FORMAT + checkpoint.sha256(data).digest() + data)
        with pytest.raises(ValueError, match=rf"run.ckpt is no checkpoint of this run \(it lacks '{field}'\)"):
            saved(path)
    path.unlink()
    saved(path)
    rows_of(path).unlink()
    with pytest.raises(ValueError, match=r"No such file or directory.*run.ckpt.rows.*move it away"):
        saved(path)


def test_what_a_killed_run_left_is_removed(path):
    saved(path)
    for name in (".run.ckpt.4711", ".run.ckpt.99"):
        path.with_name(name).write_text("half a checkpoint")
    path.with_name(".another.ckpt.4711").write_text("not ours")
    saved(path)
    assert sorted(p.name for p in path.parent.iterdir()) == [".another.ckpt.4711", "run.ckpt", "run.ckpt.rows"]


def test_rows_close_in_time_are_saved_together_and_at_the_end(path, monkeypatch):
    writes, clock = [], iter([k / 4 for k in range(1000)])  # a row every quarter of a second, and a look after a save
    monkeypatch.setattr(checkpoint, "time", type("Clock", (), {"monotonic": staticmethod(lambda: next(clock))}))
    monkeypatch.setattr(checkpoint, "write_atomically", lambda *a: writes.append(a) or write_atomically(*a))
    saved(path, steps=30, every=1)
    assert len(writes) == 9  # the first row, every fourth after it, and the last
    assert len(rows_of(path).read_bytes().splitlines()) == 31


def test_an_interruption_between_two_saves_loses_no_row(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1e9)
    problem = Ticking(32, interrupt)
    assert saved(path, problem, FdeHBO(), 2, 60, every=7).stop == "interrupted"
    assert checkpoint.read(path)[0]["state"][3] == 28
    resumed = saved(path, Ticking(), FdeHBO(), 2, 60, every=7)
    whole = run(Ticking(), FdeHBO(), 2, steps=60, every=7, progress=False)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


def test_a_problem_that_changes_is_saved_as_it_was_at_the_row(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1e9)
    drifting = Drifting(noise=0.5)
    monkeypatch.setattr(
        drifting, "lower", lambda *a: interrupt() if drifting.shift > 6 else Drifting.lower(drifting, *a)
    )
    part = saved(path, drifting, SOBA(), steps=30, every=7)
    assert part.stop == "interrupted"
    assert part.state.t % 7
    resumed = saved(path, Drifting(noise=0.5), SOBA(), steps=30, every=7)
    whole = run(Drifting(noise=0.5), SOBA(), steps=30, every=7, progress=False)
    assert torch.equal(whole.state.y, resumed.state.y)
    assert same_history(whole.history, resumed.history)


def test_an_error_loses_no_row(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1e9)

    def fail():
        raise OSError("no more data")

    with pytest.raises(OSError, match="no more data"):
        saved(path, Ticking(20, fail), steps=60, every=7)
    assert checkpoint.read(path)[0]["state"][3] == 14


class Evaluated(Quadratic):
    """Evaluates to whatever it is given."""

    def __init__(self, numbers):
        super().__init__()
        self._numbers = numbers

    def evaluate(self, x, y):
        return self._numbers


floats = st.floats(width=32)
numbers = st.one_of(
    st.booleans(), st.integers(), floats, st.decimals(allow_nan=None), st.fractions(),
    floats.map(np.float64), floats.map(np.float32), st.floats(width=16).map(np.float16),
    st.integers(-128, 127).flatmap(lambda n: st.sampled_from([np.int64(n), np.int8(n), np.array(n), np.bool_(n > 0)])),
    floats.map(torch.tensor), st.integers(-9, 9).map(torch.tensor), st.booleans().map(torch.tensor),
    floats.map(lambda value: torch.tensor(value, requires_grad=True) * 2),
    floats.map(lambda value: torch.tensor(value, dtype=torch.bfloat16)),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30)
@given(st.dictionaries(st.text().map("n{}".format), numbers, max_size=4))
def test_a_checkpoint_that_can_be_written_can_be_read(tmp_path_factory, given):
    """Whatever numbers `evaluate` returns, the history has plain ones, and the resumed history has the same."""
    path = tmp_path_factory.mktemp("runs") / "run.ckpt"
    if any(isinstance(value, Decimal) and value.is_snan() for value in given.values()):  # no float has its like
        with pytest.raises(ValueError, match="evaluate must return numbers, got Decimal"):
            saved(path, Evaluated(given), steps=2)
        return
    first, resumed = (saved(path, Evaluated(given), steps=2) for _ in range(2))
    for name, value in given.items():
        stored = [history[name].tolist() for history in (first.history, resumed.history)]
        assert [*map(type, stored[0])] == [*map(type, stored[1])]
        assert {*map(type, stored[0])} <= {int, float}
        expected = float(value.detach() if isinstance(value, torch.Tensor) else value)
        for number in stored[0] + stored[1]:
            assert float(number) == expected or (np.isnan(number) and np.isnan(expected))


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "replace", lambda *a: interrupt())
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]
