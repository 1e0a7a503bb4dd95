"""python -m bilevel_book doctor: each fault is made on purpose, and told with its cure."""

import gzip

import pytest
import torch

from bilevel_book import doctor
from bilevel_book.__main__ import main
from bilevel_book.mnist import data
from bilevel_book.paths import MNIST

LABELS = "t10k-labels-idx1-ubyte"


def told(capsys, *checks):
    code = doctor.report(checks)
    return code, capsys.readouterr().out


def test_a_sound_installation_is_told_line_by_line(capsys, monkeypatch):
    monkeypatch.setattr(
        doctor, "version", lambda name: {"bilevel-core": doctor.bilevel_core.__version__}.get(name, "9")
    )
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok      ") for line in lines[:-1])
    for words in ("Python 3.", "bilevel_core ", "torch ", "numpy ", "MNIST: 4 files", "threads: 1, ", "checkpoint: "):
        assert sum(words in line for line in lines) == 1, words
    assert lines[-1] == "problems: 0, warnings: 0"


@pytest.mark.parametrize(
    ("fault", "words", "cure"),
    [
        (lambda path: path.unlink(), "is missing: expected the gzipped MNIST file", "restore it (git checkout"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "is damaged (", "load_mnist(download=True)"),
        (lambda path: path.write_bytes(gzip.compress(bytes(10_008))), "is altered: expected md5 27ae", "restore it"),
    ],
    ids=["missing", "cut", "altered"],
)
def test_data_that_is_not_mnist_is_a_problem(fault, words, cure, tmp_path, monkeypatch, capsys):
    path = tmp_path / f"{LABELS}.gz"
    path.write_bytes((MNIST / path.name).read_bytes())
    fault(path)
    monkeypatch.setattr(data, "MNIST", tmp_path)
    monkeypatch.setattr(data, "FILES", {LABELS: data.FILES[LABELS]})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    found, arrow = out.splitlines()[[line[:12] for line in out.splitlines()].index("problem data") :][:2]
    assert words in found
    assert arrow.startswith("        -> restore it")
    assert cure in arrow
    assert "checkpoint: " in out  # the other checks are made all the same


def test_more_threads_than_cores_are_a_warning(monkeypatch, capsys):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 10_000)
    code, out = told(capsys, doctor.threads)
    assert code == 0
    assert out.startswith("warning threads: 10000, cores: ")
    assert "OMP_NUM_THREADS=1" in out


@pytest.mark.parametrize(
    ("found", "line"),
    [
        ("2.5.1", "problem torch 2.5.1\n        -> pip install 'torch>=2.6'\n"),
        ("2.6.0", "ok      torch 2.6.0\n"),
        ("2.13.0+cpu", "ok      torch 2.13.0+cpu\n"),
        (None, "problem torch is not installed\n        -> pip install 'torch>=2.6'\n"),
    ],
)
def test_a_package_that_is_too_old_or_missing_is_a_problem(found, line, monkeypatch, capsys):
    def version(name):
        if name == "torch" and found is None:
            raise doctor.PackageNotFoundError(name)
        return found if name == "torch" else "1.2"

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(doctor, "requires", lambda _: ["torch>=2.6", "numpy", 'dask; extra == "cluster"'])
    code, out = told(capsys, doctor.versions)
    assert code == line.startswith("problem")
    assert line in out
    assert "ok      numpy 1.2\n" in out
    assert "dask" not in out
    assert "-> pip lists 1.2: install this one again" in out


def test_a_run_that_does_not_resume_exactly_is_a_problem(monkeypatch, capsys):
    again = iter([5, 10, 9])  # the last is the run in one go
    run = doctor.bilevel_core.run
    monkeypatch.setattr(
        doctor.bilevel_core, "run", lambda *a, steps, **o: run(*a, steps=next(again), **o), raising=False
    )
    code, out = told(capsys, doctor.checkpoint)
    assert code == 1
    assert "problem checkpoint: a run that is resumed is not the run in one go\n        -> report this" in out


def test_no_room_for_a_checkpoint_is_a_problem_with_the_words_of_the_system(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    code, out = told(capsys, doctor.checkpoint)
    assert code == 1
    assert "nowhere" in out
    assert "-> begin with the first problem" in out
