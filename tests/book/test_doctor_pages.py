"""python -m bilevel_book doctor: the library's lines first, then browser, pins and JupyterLab."""

import pytest

from bilevel_book import doctor
from bilevel_book.__main__ import main
from bilevel_book.doctor import report


def told(capsys, *checks):
    code = report(checks)
    return code, capsys.readouterr().out


def test_the_library_is_examined_first(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", (*doctor.CHECKS[:1], doctor.chromium))
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Python 3." in lines[0]
    assert "Chromium" in " ".join(lines[-3:])


def test_no_chromium_on_the_path_is_a_warning(monkeypatch, tmp_path, capsys):
    (tmp_path / "google-chrome").write_text("#!/bin/sh\n")
    (tmp_path / "google-chrome").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert told(capsys, doctor.chromium) == (
        0,
        f"ok      Chromium: {tmp_path}/google-chrome\nproblems: 0, warnings: 0\n",
    )
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    code, out = told(capsys, doctor.chromium)
    assert code == 0
    assert out.startswith("warning no Chromium on PATH (chromium, chromium-browser, google-chrome): tests")
    assert "-> apt-get install chromium" in out


def test_pins_that_are_not_kept_are_named(monkeypatch, tmp_path, capsys):
    asked = tmp_path / "requirements.txt"
    monkeypatch.setattr(doctor, "PINS", asked)
    monkeypatch.setattr(doctor, "version", {"torch": "2.13.0+cpu", "numpy": "1.0"}.get)
    asked.write_text("# first\ntorch==2.13.0\n")
    assert told(capsys, doctor.pins)[1].startswith("ok      all 1 packages")
    asked.write_text("torch==2.13.0\nnumpy==2.4.6\n")
    code, out = told(capsys, doctor.pins)
    assert (code, out.count("\n")) == (0, 3)
    assert "warning numpy 1.0 is installed, 2.4.6 is pinned\n        -> pip install numpy==2.4.6" in out
    monkeypatch.undo()
    monkeypatch.setattr(doctor, "PINS", asked)
    asked.write_text("a-package-that-nobody-has==1\n")
    code, out = told(capsys, doctor.pins)
    assert code == 1
    assert "problem a-package-that-nobody-has is pinned and not installed" in out


@pytest.mark.parametrize("missing", list(doctor.EXTENSIONS))
def test_an_extension_that_lab_does_not_have_is_a_problem(missing, monkeypatch, tmp_path, capsys):
    for name in doctor.EXTENSIONS:
        (tmp_path / name).mkdir(parents=True)
        if name != missing:
            (tmp_path / name / "package.json").write_text("{}")
    monkeypatch.setattr(doctor, "LAB", tmp_path)
    code, out = told(capsys, doctor.lab)
    assert code == 1
    assert f"problem JupyterLab has no {missing}\n        -> pip install --force-reinstall" in out
    assert out.count("ok ") == 1
