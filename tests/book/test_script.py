"""The script that grows from Chapter 1 to 7: one setting, and tables that say what its runs printed."""

import re

import nbformat

from bilevel_book.paths import ROOT

CHAPTERS = {path.name[:2]: nbformat.read(path, 4).cells for path in sorted((ROOT / "chapters").glob("0[1-8]*.ipynb"))}
CELLS = {number: {cell.id: cell for cell in cells} for number, cells in CHAPTERS.items()}
SCRIPTS = {number: cells for number, cells in CELLS.items() if "script" in cells}


def numbers(text):
    """Shares and counts, as a script prints them or a table has them."""
    plain = text.replace(" v", "v").replace("\\,\\%", "%").replace("$", "")
    return sorted(re.findall(r"[\d.]+%|\d+ \w+", plain))


def rows(table):
    found = re.findall(r"^\| (\d) \|.*?\| (.*) \|$", table.source, re.M)
    return {f"0{number}": numbers(row) for number, row in found}


def test_all_scripts_clean_the_same_digits():
    assert list(SCRIPTS)[:4] == ["01", "02", "03", "04"]
    assert len({cells["script-data"].source for cells in SCRIPTS.values()}) == 1


def test_tables_repeat_what_the_scripts_print():
    for number, cells in SCRIPTS.items():
        told = rows(cells["script-table"])
        assert list(told)[-2:] == [f"0{k}" for k in (int(number) - 1, int(number)) if k]  # and the last chapter's
        for earlier in SCRIPTS.keys() & told.keys():
            assert told[earlier] == numbers(SCRIPTS[earlier]["script"].outputs[0].text), (number, earlier)


def test_every_task_has_a_hint_and_a_solution_that_is_right():
    for number, cells in CELLS.items():
        ids = list(cells)
        tasks = [name.removesuffix("-task") for name in ids if name.endswith("-task")]
        assert len(tasks) >= (2 if number in SCRIPTS else 0)
        for task in tasks:
            stub, hint, solution = ids[(at := ids.index(f"{task}-task")) : at + 3]
            assert solution == f"{task}-task-solution"
            assert "Hint" in cells[hint].source
            assert cells[stub].outputs[0].text.startswith("To do")
            assert set(cells[solution].outputs[0].text.splitlines()) == {"Right."}
