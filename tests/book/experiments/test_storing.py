"""Results on disk: a run is a CSV and a JSON with all that is known of it, and is read back as it was."""

import json

import pandas as pd
import pytest
import torch

from bilevel_book.experiments import read, reproduce, sweep


@pytest.mark.slow
def test_every_run_is_stored_with_all_that_is_known_of_it(small, folder):
    runs = sweep(small, "full", ["main"])
    reproduce(runs, folder, progress=False)
    facts = json.loads((folder / "main" / "FdeHBO_delta_1_1.json").read_text())
    assert facts["run"]["options"]["delta"] == 1.0
    assert facts["run"]["options"]["r_v"] == "inf"
    assert facts["run"]["seed"] == 1
    assert (facts["stop"], facts["steps"], facts["threads"]) == ("steps", 40, 1)
    assert facts["versions"]["torch"] == torch.__version__
    assert {"python", "numpy", "bilevel_core"} <= facts["versions"].keys()
    assert facts["commit"] is None or len(facts["commit"].removesuffix("-dirty")) == 40
    (run,) = (run for run in runs if (run.label, run.seed) == ("FdeHBO, delta 1", 1))
    assert facts["settings"] == repr(run.make_solver())  # with the defaults
    assert facts["cpu"]
    assert facts["wall_seconds"] > 0
    history = pd.read_csv(folder / "main" / "FdeHBO_delta_1_1.csv")
    assert list(history.step) == [0, 10, 20, 30, 40]
    assert not list(folder.rglob("*.ckpt*"))


@pytest.mark.slow
def test_what_was_stored_is_read_in_the_order_of_the_file(small, folder):
    reproduce(sweep(small, "full"), folder / "small" / "full", progress=False)
    table = read(small, folder)
    assert list(table.group.unique()) == ["tuning", "main", "quiet", "bold"]
    assert list(table[table.group == "main"].label.unique()) == ["FdeHBO", "SOBA", "FdeHBO, delta 1"]
    assert set(read(small, folder, group="quiet").seed) == {3}
    assert {"solver", "stop", "diverged_at", "objective"} <= set(table)


def test_what_other_settings_left_is_not_read(write, folder):
    reproduce(sweep(write(), "smoke"), folder / "small" / "smoke", progress=False)
    changed = write(("delta = 1.0", "delta = 0.5"))
    assert set(read(changed, folder, "smoke").label) == {"FdeHBO", "SOBA"}


def test_a_diverged_run_is_a_result(write, folder):
    path = write(("[main.SOBA]", "[main.SOBA]\nbeta = 1e30"))
    reproduce(sweep(path, "full", ["main"], ["SOBA"]), folder / "small" / "full", progress=False)
    table = read(path, folder)
    assert set(table.stop) == {"diverged"}
    assert (table.diverged_at > 0).all()
    assert table.groupby("seed").objective.last().notna().all()  # `last` skips the missing one
    assert table[table.step == table.diverged_at].objective.isna().all()


def test_without_results_it_is_told_how_to_make_them(small, folder):
    with pytest.raises(FileNotFoundError, match=rf"reproduce {small} --size full --results {folder}` first"):
        read(small, folder)


@pytest.mark.slow
def test_a_damaged_result_is_not_taken_for_a_whole_one(small, folder):
    runs = sweep(small, "full", ["main"], ["SOBA"])
    reproduce(runs, folder, progress=False)
    path = folder / f"{runs[0].name}.csv"
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole.replace(b"1", b"2", 1)):
        path.write_bytes(damaged)
        assert reproduce(runs, folder, progress=False) == runs[:1]
        assert path.read_bytes() == whole
    path.unlink()
    assert reproduce(runs, folder, progress=False) == runs[:1]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": '])
def test_a_json_that_is_none_is_named(small, folder, text):
    (run,) = sweep(small, "smoke", labels=["SOBA"])
    reproduce([run], folder, progress=False)
    (folder / f"{run.name}.json").write_text(text)
    with pytest.raises(ValueError, match=r"SOBA_0.json is not about a run .*: remove it, and the run is done again"):
        reproduce([run], folder, progress=False)
