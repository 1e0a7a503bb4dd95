"""Files: each thing that can be wrong with one is told, with its place, what was given and what is allowed."""

import tomllib

import pytest

from bilevel_book import experiments
from bilevel_book.experiments import load, names, sweep
from bilevel_book.paths import EXPERIMENTS


def test_a_file_becomes_records(small):
    file = load(small)
    assert (file.name, file.problem, file.options, file.columns) == (
        "small",
        "Quadratic",
        {"noise": 0.5},
        ["objective"],
    )
    assert {size: list(groups) for size, groups in file.sizes.items()} == {
        "smoke": ["main"], "full": ["tuning", "main", "quiet", "bold"],
    }  # fmt: skip
    quiet = file.sizes["full"]["quiet"]
    assert (quiet.methods, quiet.only, quiet.seeds, quiet.problem) == ("main", ["SOBA"], [3], {"noise": 0.0})
    assert file.sizes["full"]["main"].budget({}, "SOBA") == {"steps": 40, "every": 10}
    changed = file.tables["main"]["FdeHBO, delta 1"]
    assert (changed.solver, changed.options["alpha"], changed.options["delta"]) == ("FdeHBO", 0.05, 1.0)


def test_a_file_is_decoded_once_and_again_when_it_changed(write, monkeypatch):
    decoded = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: decoded.append(text) or loads(text))
    for _ in range(3):
        load(write())
    assert len(decoded) <= 1  # none, if an earlier test had this very file
    assert load(write(("delta = 1.0", "delta = 0.5"))).tables["main"]["FdeHBO, delta 1"].options["delta"] == 0.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('problem = "Quadratic"', "", r"problem: got nothing, allowed: str"),
        (
            'problem = "Quadratic"',
            'problem = "Cubic"',
            r"problem: unknown BilevelProblem .*'Cubic'; known are .*Valley",
        ),
        ('problem = "Quadratic"', 'problem = "no.such:Thing"', r"problem: no.such:Thing cannot be imported"),
        ('problem = "Quadratic"', 'problem = "pathlib:Path"', r"problem: pathlib:Path is not a BilevelProblem"),
        (
            "options = { noise = 0.5 }",
            "options = { nose = 0.5 }",
            r"options: unknown option of Quadratic 'nose'; known",
        ),
        ("noise = 0.5", 'noise = "loud"', r"options: noise: got 'loud', allowed: float"),
        ('columns = ["objective"]', 'columns = "objective"', r"columns: got 'objective', allowed: list\[str\]"),
        ("columns =", "colour = 3\ncolumns =", r"colour: got 3, allowed: dict"),
        ("seeds = [7], ", "", r"\[sizes.full\] tuning: seeds: got nothing, allowed: list\[int\]"),
        ("seeds = [7]", "seeds = 7", r"\[sizes.full\] tuning: seeds: got 7, allowed: list\[int\]"),
        ("seeds = [7]", "seeds = [0.5]", r"\[sizes.full\] tuning: seeds: got \[0.5\], allowed: list\[int\]"),
        ("grid = true", "grid = 1", r"\[sizes.full\] tuning: grid: got 1, allowed: bool"),
        ("steps = 40", "stepts = 40", r"\[sizes.full\] main: unknown option of Group 'stepts'; known are .*steps"),
        ("steps = 40", "steps = 0", r"\[sizes.full\] main: steps must be a whole number of at least 1, got 0"),
        ("steps = 40", 'steps = "many"', r"\[sizes.full\] main: steps: got 'many', allowed: int"),
        (
            "steps = 40",
            "steps = 40, time = 1.0",
            r"\[sizes.full\] main: give one of steps, gradients or time, got steps and time",
        ),
        ("every = 10", "every = [10, 5]", r"every must be .*or an increasing list of such, got \[10, 5\]"),
        (
            'methods = "main", only = ["SOBA"]',
            'methods = "man"',
            r"quiet: unknown table of methods 'man'; known are main",
        ),
        ('only = ["SOBA"]', 'only = ["Sova"]', r"quiet: unknown label in `only` 'Sova'; known are FdeHBO, SOBA"),
        ("noise = 0.0", "nose = 0.0", r"quiet: unknown option of Quadratic 'nose'"),
        ("alpha = 0.3", "alfa = 0.3", r"bold: unknown option of FdeHBO 'alfa'; known are .*alpha"),
        ("alpha = 0.05", "alfa = 0.05", r'\[main."FdeHBO"\]: unknown option of FdeHBO .alfa.; known are .*alpha'),
        ("c = 1.0, w", "c = 1.0, v", r'\[main."FdeHBO"\]: unknown option of Power .v.; known are c, w, p, cap'),
        ("at = [5]", "at = 5", r'\[main."SOBA"\]: at: got 5, allowed: list'),
        ("c = 1.0, w", 'c = "one", w', r"""\[main."FdeHBO"\]: c: got 'one', allowed: float"""),
        ("[0.1, 0.01], at", "[0.1], at", r'\[main."SOBA"\]: a Steps schedule needs'),
        ("delta = 1.0", 'problem = { dim_x = "3" }', r"""delta 1"\]: dim_x: got '3', allowed: int"""),
        ('delta 1"]\nlike = "FdeHBO"', 'delta 1"]\nlike = "FdeBHO"', r"unknown label in `like` 'FdeBHO'; known are"),
        (
            'delta 1"]\nlike = "FdeHBO"',
            'delta 1"]\nlike = "FdeHBO, delta 1"',
            r"unknown label in `like` 'main.FdeHBO, delta",
        ),
        ('delta 1"]\nlike = "FdeHBO"', 'delta 1"]', r"""delta 1"\]: unknown Solver .* 'FdeHBO, delta 1'; known are"""),
        ('delta 1"]\nlike = "FdeHBO"', 'delta 1"]\nsolver = "pathlib:Path"', "pathlib:Path is not a Solver"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(write, old, new, message):
    with pytest.raises(ValueError, match=rf"^small.toml: .*{message}"):
        load(write((old, new)))


def test_what_is_no_toml_is_told(tmp_path):
    (tmp_path / "odd.toml").write_text("problem = = 3")
    with pytest.raises(ValueError, match=r"odd.toml: Invalid value"):
        load(tmp_path / "odd.toml")


def test_an_experiment_that_is_not_there_is_told():
    with pytest.raises(
        ValueError,
        match=r"unknown experiment 'great' \(or .* TOML file\); known are after-2023, hyper-cleaning, hyper",
    ):
        load("great")
    with pytest.raises(ValueError, match=r"there is no file great.toml"):
        load("great.toml")


def test_names_are_those_of_the_files_in_the_repository():
    assert names() == sorted(path.stem.replace("_", "-") for path in EXPERIMENTS.glob("*.toml"))
    assert {"hyper-cleaning", "hyper-representation", "projection", "rate", "released"} <= set(names())


@pytest.mark.parametrize("name", experiments.names())
def test_the_experiments_of_the_book_are_well_formed(name):
    for size in load(name).sizes:
        assert sweep(name, size)
