"""Several processes with a part of the data each take the steps of one process with all of it, and stop together."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from bilevel_core.problem import seeded
from core.on_ranks import BATCH, ROWS, STEPS, Joined, answers, methods, part
from core.runs import same_state

SCRIPT = Path(__file__).with_name("on_ranks.py")
ROOT = SCRIPT.parents[2]
DIM_X, DIM_Y = 16, 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """Two ranks, and three of which one is killed and all start again: the folder of the three, their exit codes, what
    every rank tells at last, by how many they are."""
    folder = tmp_path_factory.mktemp("ranks")
    folders = {ranks: folder / str(ranks) for ranks in (2, 3)}
    for each in folders.values():
        each.mkdir()
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    here = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1"}
    command = [sys.executable, SCRIPT, folder]
    done = subprocess.run(command, env=os.environ | here, capture_output=True, text=True, timeout=1800)
    said = [path.read_text() for path in sorted(folders[3].glob("tell_*.txt"))]
    assert done.returncode == 0, (done.stderr, said)
    files = {ranks: sorted(each.glob("?.pt")) for ranks, each in folders.items()}
    assert [len(each) for each in files.values()] == [2, 3], said
    told = {ranks: [torch.load(path, weights_only=False) for path in each] for ranks, each in files.items()}
    return folders[3], json.loads(done.stdout), told


@pytest.fixture(scope="module")
def told(started):
    return started[2]


@pytest.fixture(scope="module")
def joined():
    return {ranks: answers(Joined([part(rank, ranks) for rank in range(ranks)]), ranks) for ranks in (2, 3)}


@pytest.mark.parametrize(("ranks", "name"), [(ranks, name) for ranks in (2, 3) for name in methods(ranks)])
def test_iterates_and_rows_are_those_of_one_process(told, joined, ranks, name):
    state, history = joined[ranks][name]
    found, rows = told[ranks][0]["answers"][name]
    for variable in "xyv":
        expected = getattr(state, variable)
        torch.testing.assert_close(getattr(found, variable), expected, rtol=1e-10, atol=1e-12)
    assert found.t == STEPS
    pd.testing.assert_frame_equal(rows, history, rtol=1e-10)  # samples, gradients, H v and J v exactly
    assert rows["samples"].iloc[-1] % (ranks * BATCH) == 0


@pytest.mark.parametrize("ranks", [2, 3])
def test_other_users_of_the_losses_see_the_mean(told, joined, ranks):
    """Three draws a step, Newton's line search with conjugate gradients, L-BFGS."""
    for found, expected in zip(told[ranks][0]["answers"]["others"], joined[ranks]["others"], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_hold_the_same_bits(told, ranks):
    first, *others = told[ranks]
    for other in others:
        for name in methods(ranks):
            (state, rows), (its_state, its_rows) = first["answers"][name], other["answers"][name]
            for variable in ("x", "y", "v", "rng"):
                assert torch.equal(getattr(state, variable), getattr(its_state, variable))
            pd.testing.assert_frame_equal(rows, its_rows, check_exact=True)


@pytest.mark.parametrize("ranks", [2, 3])
def test_data_is_disjoint_and_x_starts_as_on_rank_0(told, ranks):
    for level in ("upper", "lower"):
        rows = [each["draws"][level] for each in told[ranks]]
        assert sum(map(len, rows)) == len(set.union(*rows)) > ROWS / 3
        assert [len({row // ranks for row in part}) > 5 for part in rows] == [True] * ranks
        places = [sorted(row // ranks for row in part) for part in rows]
        assert places[0] != places[1]  # the draws are independent, not the same places in other parts
    for each in told[ranks]:
        for found, expected in zip(each["start"], part(0, ranks).start(seeded(0)), strict=True):
            assert torch.equal(found, expected)


@pytest.mark.parametrize("method", ["FdeHBO", "FMBO"])
def test_directions_travel_in_one_message(told, method):
    """(d_y, d_v, d_x) at one point in the first step, at two points from then on."""
    numbers = 2 * DIM_Y + DIM_X
    assert [each["sent"][method] for each in told[2]] == [[(1, numbers), (2, 2 * numbers)]] * 2


def test_killed_process_stops_the_others_with_a_word(started):
    folder, codes, _ = started
    assert codes == [[1, 1, -9], [0, 0, 0]]
    for rank in (0, 1):
        last = (folder / f"die_{rank}.txt").read_text().strip().splitlines()[-1]
        assert f"ConnectionError: rank {rank} of 3 lost the others: a process has ended, or did not answer" in last
        assert "Start all of them again; with a checkpoint the run goes on from there." in last


def test_killed_processes_resume_to_the_same_bits(started):
    folder, _, told = started
    _, about, content = (folder / "first_killed.ckpt").read_bytes().split(b"\n", 2)
    saved = torch.load(io.BytesIO(content), weights_only=False)
    assert saved["number"] == 2  # rows of steps 0 and 2; the third was never finished
    assert json.loads(about)["options"]["processes"] == "3"
    for each in told[3]:
        (state, history, evaluated), (expected, its_history, its_evaluated) = each["resumed"], each["whole"]
        assert (evaluated, its_evaluated) == (3, 5)  # rows of steps 4, 6, 8, and of 0, 2, 4, 6, 8
        assert same_state(state, expected)
        pd.testing.assert_frame_equal(history, its_history, check_exact=True)


def test_differing_ranks_are_refused_on_every_rank(told):
    said, *others = [each["refused"] for each in told[2]]
    assert others == [said]
    assert said["draw"].startswith("the sizes of a draw must be the same on every rank")
    assert said["draw"].endswith("got [[4, 4], [5, 4]]")
    assert said["x"].startswith("x and y must be the same on every rank")
    assert said["full"].startswith("the sizes of all data must be the same on every rank")
    assert said["full"].endswith("got [[20, 20], [21, 21]]")
    assert "whole.ckpt is no checkpoint of this run" in said["checkpoint"]
