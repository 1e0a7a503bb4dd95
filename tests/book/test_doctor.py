"""python -m bilevel_book doctor: each fault is made on purpose, and told with its cure."""

import pytest

import bilevel_core
from bilevel_book import doctor
from bilevel_book.__main__ import main
from bilevel_book.mnist import data

PINS = "# made by pip-compile\nnumpy==1.2\ntorch==2.6.0\ntorchvision==0.21.0\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An installation as its pins ask for it, with Chromium and JupyterLab; its versions, to be changed."""
    versions = dict(line.split("==") for line in PINS.splitlines()[1:]) | {"torch": "2.6.0+cpu", "jupyterlab": "4.6.6"}
    (tmp_path / "requirements.txt").write_text(PINS)
    for name in doctor.EXTENSIONS:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "package.json").touch()
    monkeypatch.setattr(doctor, "PINS", tmp_path / "requirements.txt")
    monkeypatch.setattr(doctor, "LAB", tmp_path)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")

    def version(name):
        if name not in versions:
            raise doctor.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)
    return versions


@pytest.mark.slow  # reads MNIST
def test_sound_installation_has_no_problem(installed, capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok      ") for line in lines[:-1])
    expected = "Python 3.|bilevel_core |3 packages are installed as|torchvision 0.21|MNIST: 4 files|checkpoint: |Lab"
    for words in expected.split("|"):
        assert any(words in line for line in lines), words
    assert lines[-1] == "problems: 0, warnings: 0"


@pytest.mark.slow  # reads MNIST
def test_installation_by_pip_alone_has_no_problem(installed, capsys):
    doctor.PINS.unlink()
    del installed["jupyterlab"]
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "warning no JupyterLab" in told
    assert "requirements.txt" not in told


def test_faults_are_told_with_their_cures(installed, capsys, monkeypatch, tmp_path):
    installed["torch"] = "2.5.1"
    del installed["numpy"]
    for name in doctor.EXTENSIONS:
        (tmp_path / name / "package.json").unlink()
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(data, "MNIST", tmp_path)
    steps = iter([5, 10, 9])  # the last is the run in one go
    run = bilevel_core.run
    monkeypatch.setattr(bilevel_core, "run", lambda *given, **o: run(*given, **o | {"steps": next(steps)}))
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    for fault in (
        "warning torch 2.5.1 is installed, 2.6.0 is pinned\n        -> pip install torch==2.6.0",
        "problem numpy is pinned and not installed\n        -> pip install numpy==1.2",
        "is missing: expected the gzipped MNIST file",
        "problem checkpoint: a resumed run differs from the run in one go\n        -> report this",
        "warning no Chromium on PATH",
        "-> pip install --force-reinstall ipywidgets",
        "problems: 5, warnings: 2",
    ):
        assert fault in told
