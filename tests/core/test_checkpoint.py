"""A checkpoint is resumed bit for bit, refused to any other run, and never lost."""

import io
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections import deque, namedtuple
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

import bilevel_core
from bilevel_book.methods import SOLVERS
from bilevel_core import FMBO, SOBA, BilevelProblem, FdeHBO, Samples, checkpoint, from_modules, run
from bilevel_core.checkpoint import FORMAT, sha256
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power
from bilevel_core.solvers.base import Adam, State, method
from core.runs import Drifting, Ticking, interrupt, quadratic, quiet, same_history, same_state


def saved(path, problem=None, solver=None, seed=0, steps=3, **options):
    return run(problem or quadratic(), solver or FMBO(), seed, steps=steps, checkpoint=path, **quiet, **options)


def content(path):
    """What torch reads in a checkpoint."""
    return torch.load(io.BytesIO(path.read_bytes().split(b"\n", 2)[2]), weights_only=False)


def forge(path, about, data):
    """A file with a right checksum and this inside."""
    body = about + b"\n" + data
    path.write_bytes(FORMAT + sha256(body).hexdigest().encode() + b"\n" + body)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


# A resumed run is the run


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_run_split_at_random_steps_is_bit_equal(path, name):
    cuts = sorted(random.Random(name).sample(range(1, 30), 2))
    whole = run(quadratic(), SOLVERS[name](), 2, steps=30, every=4, **quiet)
    for steps in (*cuts, 30):
        resumed = saved(path, solver=SOLVERS[name](), seed=2, steps=steps, every=[*range(4, 30, 4), 30])
    assert same_state(whole.state, resumed.state)
    assert resumed.state.t == 30


HIDDEN_RULE = SOLVERS["PZOBO-S"](released=True)  # moves y by an Adam of its own


@pytest.mark.parametrize(
    "solver", [FdeHBO(alpha=Adam(0.1)), FMBO(independent=True), FMBO(eta=lambda t: 1 / (1 + t)), HIDDEN_RULE]
)
def test_interrupted_run_resumes_bit_equal(path, solver):
    whole = run(quadratic(), solver, 2, steps=60, every=7, **quiet)
    for when in (32, 20):  # twice in a row, from where the last one stopped
        assert saved(path, Ticking(when), solver, 2, 60, every=7).stop == "interrupted"
        assert os.listdir(path.parent) == [path.name]
    resumed = saved(path, Ticking(), solver, 2, 60, every=7)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


@pytest.mark.parametrize("same_object", [True, False])
def test_changing_problem_resumes_bit_equal(path, same_object):
    whole = run(Drifting(noise=0.5), SOBA(), 2, steps=30, every=7, **quiet)
    drifting = Drifting(noise=0.5)
    sample = drifting.sample
    drifting.sample = lambda g: interrupt() if drifting.shift > 7 else sample(g)
    part = saved(path, drifting, SOBA(), 2, 30, every=7)
    assert part.stop == "interrupted"
    assert part.state.t % 7
    drifting.sample = sample
    resumed = saved(path, drifting if same_object else Drifting(noise=0.5), SOBA(), 2, 30, every=7)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)


Pair = namedtuple("Pair", ("one", "two"))


@dataclass
class Note:
    text: str
    numbers: Any


@dataclass(frozen=True)
class Nested(State):
    """Whatever a method may want to remember."""

    things: Any = field(default=(), kw_only=True)


@method
class Remembering(SOBA):
    """SOBA, with a memory that changes its length and its kinds of things, and makes a difference."""

    state_type = Nested

    def init_memory(self, state):
        return Nested(**vars(state), things={"list": [], "tuple": (), "note": Note("", None), "pair": Pair(0, 0)})

    def update(self, problem, state, generator):
        next_state = super().update(problem, state, generator)
        old, t = state.things, state.t
        things = {
            "list": [*old["list"], torch.full((2,), float(t))][-3:],
            "tuple": (*old["tuple"], t),
            "note": Note(f"step {t}", np.arange(t, dtype=np.int16)),
            "pair": Pair(np.float32(t / 3), None),
            3: [True, 1, 1.0, 1j, float("nan"), {"deep": ([],)}, torch.tensor(t)],
        }
        assert all(isinstance(part, int) for part in old["tuple"])
        return next_state.replace(x=next_state.x + 1e-3 * sum(part.sum() for part in old["list"]), things=things)


def test_states_of_any_nest_come_back_as_they_were(path):
    whole = run(quadratic(), Remembering(), steps=20, every=5, **quiet)
    for steps in (4, 11, 20):
        resumed = saved(path, solver=Remembering(), steps=steps, every=[5, 10, 15, 20])
    assert torch.equal(whole.state.x, resumed.state.x)
    mine, theirs = whole.state.things, resumed.state.things
    assert repr(mine) == repr(theirs)
    assert (mine["note"].numbers == theirs["note"].numbers).all()
    assert type(theirs["pair"]) is Pair
    assert type(theirs["pair"].one) is np.float32
    assert theirs["note"].numbers.dtype == np.int16


@pytest.mark.parametrize(
    ("thing", "words"),
    [(deque([1]), "collections.deque"), (object(), "things would not be read"), (lambda t: t, "<lambda>")],
)
def test_state_that_cannot_be_saved_is_refused_at_once(path, thing, words):
    class Odd(SOBA):
        state_type = Nested

        def init_memory(self, state):
            return Nested(**vars(state), things=[thing])

    with pytest.raises(ValueError, match=rf"cannot hold this run \([^\n]*{words}") as caught:
        saved(path, solver=Odd(), steps=1000)
    assert len(str(caught.value)) < 400  # torch alone says five times as much
    assert not path.exists()


# Any other run is refused


TOY = """
import torch
from bilevel_core import BilevelProblem, Samples

SCALE = {"c": 1.0}

class Toy(BilevelProblem):
    __slots__ = ("slot",)
    def start(self, generator): return torch.ones(2), torch.zeros(2)
    def sample(self, generator): return Samples(*torch.randn(2, 2, generator=generator))
    def upper(self, x, y, batch): return ((y - batch) ** 2).sum()
    def lower(self, x, y, batch, power=2):
        def inside(z):
            return (lambda w: 1.0 * w)(z)
        return ((y - inside(x)) ** power).sum() / 2 + 0.1 * (y * batch).sum() * SCALE["c"]
"""


METHOD = """
from bilevel_core import SOBA

class Mine(SOBA):
    def update(self, problem, state, generator):
        state = super().update(problem, state, generator)
        return state.replace(y=1.0 * state.y)
"""


def typed(source, name="Toy"):
    """A problem or a method of a class that has no source file, as in a notebook or from stdin."""
    names = {"__name__": "__main__"}
    exec(source, names)
    return names[name]()


def with_slot(value):
    source = TOY.replace('* SCALE["c"]', "* self.slot")
    problem = typed(source)
    problem.slot = value
    return problem


class Buffered(nn.Module, BilevelProblem):
    """A problem that is a module too: its buffers are its state_dict."""

    def __init__(self, scale):
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale))

    def start(self, generator):
        return torch.ones(2), torch.zeros(2)

    def sample(self, generator):
        return Samples(*torch.randn(2, 2, generator=generator))

    def upper(self, x, y, batch):
        return ((y - batch) ** 2).sum()

    def lower(self, x, y, batch):
        return ((y - self.scale * x) ** 2).sum()


def networks(ridge=0.1, shift=0.0, batch_size=5, teacher=0.0):
    """A problem from two networks, whose loss has another network, a teacher, in its closure."""
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(20, 3, generator=generator), torch.randn(20, 1, generator=generator)
    outer, inner, other = nn.Linear(3, 2), nn.Linear(2, 1), nn.Linear(1, 1)
    for k, parameter in enumerate((*outer.parameters(), *inner.parameters(), *other.parameters())):
        nn.init.constant_(parameter, 0.1 * (k + 1))
    nn.init.constant_(other.bias, teacher)

    def loss(prediction, target):
        return nn.functional.mse_loss(prediction, target + other(target).detach())

    return from_modules(outer, inner, loss, data, (data[0] + shift, data[1]), batch_size=batch_size, ridge=ridge)


STEP = "step, taken again, gives another"
FOREIGN = {
    "another seed": ({}, {"seed": 1}, "its seed is 0, now it is 1"),
    "another goal": ({}, {"best": "objective"}, "its best is None, now it is 'objective'"),
    "another option": ({}, {"solver": FMBO(r_v=3.0)}, "its solver's r_v is 100.0, now it is 3.0"),
    "another method": ({}, {"solver": SOBA()}, "its solver is 'FMBO', now it is 'SOBA'"),
    "a schedule that differs later": (
        {"solver": FMBO(eta=Power(9.0, cap=1.0))},
        {"solver": FMBO(eta=Power(8.0, cap=1.0))},
        "its solver's eta is Power(c=9.0,",
    ),
    "a rule with another rate": (
        {"solver": FMBO(alpha=Adam(lambda t: 0.1))}, {"solver": FMBO(alpha=Adam(lambda t: 0.2))}, STEP,
    ),
    "another class": ({}, {"problem": Ticking()}, "its problem is 'Quadratic', now it is 'Ticking'"),
    "other noise": ({}, {"problem": Quadratic(noise=0.25)}, f"its first {STEP} x"),
    "another start": ({}, {"problem": Quadratic(noise=0.5, seed=1)}, "it started from another x"),
    "another dimension": ({}, {"problem": Quadratic(noise=0.5, dim_x=4)}, "it started from another x"),
    "other data": ({"problem": networks()}, {"problem": networks(shift=1e-6)}, STEP),
    "another ridge": ({"problem": networks()}, {"problem": networks(ridge=0.2)}, STEP),
    "another batch size": ({"problem": networks()}, {"problem": networks(batch_size=6)}, STEP),
    "a teacher in a closure": ({"problem": networks()}, {"problem": networks(teacher=0.1)}, STEP),
    "a typed class": ({"problem": typed(TOY)}, {"problem": typed(TOY.replace("1.0 *", "2.0 *"))}, STEP),
    "a typed method": (
        {"solver": typed(METHOD, "Mine")}, {"solver": typed(METHOD.replace("1.0 *", "0.9 *"), "Mine")}, STEP,
    ),
    "a keyword default": ({"problem": typed(TOY)}, {"problem": typed(TOY.replace("power=2", "power=4"))}, STEP),
    "a global": ({"problem": typed(TOY)}, {"problem": typed(TOY.replace('"c": 1.0', '"c": 0.5'))}, STEP),
    "a slot": ({"problem": with_slot(1.0)}, {"problem": with_slot(0.5)}, STEP),
    "a buffer": ({"problem": Buffered(1.0)}, {"problem": Buffered(2.0)}, "it started from another scale"),
}  # fmt: skip


@pytest.mark.parametrize(("first", "second", "words"), FOREIGN.values(), ids=FOREIGN)
def test_checkpoint_of_another_run_is_refused(path, first, second, words):
    saved(path, **first)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"run.ckpt is no checkpoint of this run .*; move it away") as caught:
        saved(path, **first | second)
    assert words in str(caught.value)
    assert path.read_bytes() == before
    assert saved(path, **first, steps=5).state.t == 5


SAME = (networks,) * 2, (lambda: Buffered(1.0),) * 2, (lambda: typed(TOY), lambda: typed(f'"""Words."""\n{TOY}'))


@pytest.mark.parametrize(("make", "again"), SAME, ids=["networks", "a buffer", "other words"])
def test_same_run_made_anew_is_recognised(path, make, again):
    saved(path, make())
    resumed = saved(path, again(), steps=6)
    assert same_state(resumed.state, run(make(), FMBO(), steps=6, **quiet).state)


def test_few_states_stay_in_memory_between_saves(path, monkeypatch):
    """Those at the start, after the first step, before and after the last one, and the best."""
    monkeypatch.setattr(checkpoint, "PAUSE_SECONDS", 1e9)
    seen, alive = [], []

    def callback(state, row):
        seen.append(weakref.ref(state))
        alive.append(sum(each() is not None for each in seen))

    saved(path, steps=50, every=1, callback=callback)
    assert max(alive) <= 5


def test_another_torch_is_told_if_its_steps_differ(path):
    saved(path, networks())
    _, about, data = path.read_bytes().split(b"\n", 2)
    other = about.replace(torch.__version__.encode(), b"2.9")
    forge(path, other, data)
    assert saved(path, networks(), steps=4).state.t == 4  # the same bits: no harm
    forge(path, other, data)
    with pytest.raises(ValueError, match=r"its torch was 2\.9, now it is"):
        saved(path, networks(shift=1.0))


def test_fewer_steps_than_saved_are_refused(path):
    saved(path, steps=20)
    with pytest.raises(ValueError, match=r"run.ckpt has 20 steps, more than the 9 asked for"):
        saved(path, steps=9)
    with pytest.raises(ValueError, match=r"more than the 1e-09 asked for"):
        run(quadratic(), FMBO(), seconds=1e-9, checkpoint=path, **quiet)
    assert [saved(path, steps=steps).state.t for steps in (20, 30)] == [20, 30]
    saved(path.with_name("other"), Ticking(23), steps=60, every=5)
    assert saved(path.with_name("other"), Ticking(), steps=20, every=5).stop == "steps"  # all that was saved


def test_overshot_budget_is_a_finished_run(path):
    first, again = (run(quadratic(), SOBA(), gradients=31, checkpoint=path, **quiet) for _ in range(2))
    assert first.history[["gradients", "Hv", "Jv"]].iloc[-1].sum() == 35
    assert same_history(first.history, again.history)


# The file


def test_one_file_is_left_and_foreign_files_stay(path):
    ours = path.with_name(".run.ckpt.4711.bilevel-part")
    others = [
        path.with_name(name) for name in (".run.ckpt.local", "run.ckpt.bak", ".run.ckpt", ".a.ckpt.1.bilevel-part")
    ]
    for file in (ours, *others):
        file.write_text("something")
    saved(path)
    assert sorted(path.parent.iterdir()) == sorted([path, *others])


def test_interruption_and_error_between_saves_lose_no_row(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE_SECONDS", 1e9)

    def fail():
        raise OSError("no more data")

    with pytest.raises(OSError, match="no more data"):
        saved(path, Ticking(20, fail), steps=60, every=7)
    assert content(path)["number"] == 3  # rows at 0, 7 and 14
    saved(path, Ticking(20), steps=60, every=7)
    assert same_history(
        saved(path, Ticking(), steps=60, every=7).history, run(quadratic(), FMBO(), steps=60, every=7, **quiet).history
    )


@pytest.mark.parametrize(("cost", "gap"), [(0.0, 1.0), (0.25, 5.25)])
def test_saves_are_a_second_apart_and_take_a_twentieth_of_the_time(path, monkeypatch, cost, gap):
    problem, clock, saves = quadratic(), SimpleNamespace(now=0.0), []
    clock.monotonic = lambda: clock.now

    def sample(generator):
        clock.now += 0.25
        return Quadratic.sample(problem, generator)

    def write(*given):
        saves.append(clock.now)
        clock.now += cost

    monkeypatch.setattr(checkpoint, "time", clock)
    monkeypatch.setattr(checkpoint, "write_atomically", write)
    problem.sample = sample
    clock.now = 0.0
    saved(path, problem, steps=100, every=1)
    first, *regular, _ = np.diff(saves)  # the last save is at the end, whenever that is
    assert {first, *regular} == {gap}


@pytest.mark.slow
def test_any_flipped_bit_or_cut_is_noticed(path):
    saved(path, steps=6, every=1)
    file, generator = path.read_bytes(), random.Random(0)
    for k in range(60):
        damaged = bytearray(file)
        bit = generator.randrange(8 * len(file))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if k % 2 else file[: bit // 8])
        with pytest.raises(ValueError, match=r"is no checkpoint of this run .*checksum does not fit"):
            saved(path, steps=6, every=1)
    path.write_bytes(file)
    assert saved(path, steps=6, every=1).state.t == 6


class Command:
    """Unpickled by anybody who trusts it, it makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def as_torch(command):
    buffer = io.BytesIO()
    torch.save(command, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("written", [as_torch, pickle.dumps], ids=["torch", "pickle"])
def test_forged_checkpoint_runs_no_command(written, path, tmp_path):
    made = tmp_path / "made"
    saved(path)
    data = written(Command(made))
    forge(path, path.read_bytes().split(b"\n", 2)[1], data)
    with pytest.raises(ValueError, match=r"(?s)run\.ckpt is no checkpoint of this run .*; move it away"):
        saved(path)
    assert not made.exists()
    if written is as_torch:  # the command is real: a reader who trusts the file runs it
        torch.load(io.BytesIO(data), weights_only=False)
        assert made.is_dir()


def test_second_user_of_a_file_is_refused_with_the_pid_of_the_first(path):
    def meanwhile():
        with pytest.raises(ValueError, match=rf"run.ckpt is in use by process {os.getpid()}"):
            saved(path)

    assert saved(path, Ticking(20, meanwhile), steps=30).stop == "steps"
    assert saved(path, Ticking(), steps=31).state.t == 31


def test_lock_that_somebody_deleted_loses_nothing(path):
    lock = path.with_name(".run.ckpt.bilevel-lock")
    assert saved(path, Ticking(20, lock.unlink), steps=30).stop == "steps"


RUN = """
import sys
from bilevel_core import FdeHBO, run, runner
from bilevel_core.problems import Quadratic
assert runner.__doc__.startswith("Edited.")
run(Quadratic(noise=0.5), FdeHBO(), 4, steps=10**6, every=5, progress=False, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
def test_killed_runs_resume_bit_equal_and_hold_no_lock(path, tmp_path_factory):
    """They are of a library with other words in its docstrings, which changes nothing."""
    library = shutil.copytree(Path(bilevel_core.__file__).parent, tmp_path_factory.mktemp("other") / "bilevel_core")
    for file in library.rglob("*.py"):
        file.write_text(file.read_text(encoding="utf-8").replace('"""', '"""Edited. ', 1), encoding="utf-8")
    number = 0
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", RUN, path], cwd=library.parent)
        while not path.exists() or content(path)["number"] < number + 3:
            assert process.poll() is None
            time.sleep(0.02)
        with pytest.raises(ValueError, match=f"in use by process {process.pid}"):
            saved(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        number = content(path)["number"]
    steps = 5 * (number - 1) + 12
    resumed = saved(path, solver=FdeHBO(), seed=4, steps=steps, every=5)
    whole = run(quadratic(), FdeHBO(), 4, steps=steps, every=5, **quiet)
    assert same_state(whole.state, resumed.state)
    assert same_history(whole.history, resumed.history)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")], ids=repr)
@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_ctrl_c_twice_and_a_full_disk_leave_the_previous_checkpoint(tmp_path, monkeypatch, broken, error):
    path = tmp_path / "very" / "deep" / "run.ckpt"
    saved(path, steps=10, every=5)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, Mock(side_effect=error))  # at every save: also at the one that a Ctrl-C makes
        with pytest.raises(type(error)):
            saved(path, steps=30, every=5)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    assert same_state(saved(path, steps=30, every=5).state, run(quadratic(), FMBO(), steps=30, **quiet).state)


class OneOfTwo(Quadratic):
    """The problem of one process of two, where the other one sees what it sees, or no file."""

    rank, seen = 1, 1.0

    def processes(self):
        return self.rank, 2

    def average(self, *tensors):
        return tuple(self.seen * tensor for tensor in tensors)


def test_only_the_first_process_writes_and_all_must_see_the_file(path):
    saved(path, OneOfTwo())
    assert not path.exists()
    first, other = OneOfTwo(), OneOfTwo()
    first.rank = 0
    saved(path, first)
    saved(path, other, steps=5)  # reads it
    other.seen = 0.5
    with pytest.raises(ValueError, match="must be there for all processes, or for none"):
        saved(path, other, steps=5)
