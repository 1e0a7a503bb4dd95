"""make mutate: change one thing at a time in the code, and see whether a test fails.

A mutant is a module in which one comparison, operator, number, condition or statement is another one. It is killed if a
test fails (or runs out of time). A survivor is either a gap in the tests or changes nothing that a user could see: then
`survivors.csv` says why. The command fails where a survivor has no reason, or fewer than 95 % of the core are killed.

    python tests/mutate.py [--only FILE] [--jobs N]
"""

import argparse
import ast
import copy
import csv
import os
import signal
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REASONS = ROOT / "tests" / "survivors.csv"
CORE, THEORY = "bilevel_core/", "book/bilevel_book/theory/"
NAMES = ("directions.py", "implicit.py", "runner.py", "checkpoint.py", "solvers/base.py", "solvers/fmbo.py",
         "solvers/fdehbo.py", "solvers/soba.py", "solvers/alternating.py")  # fmt: skip
LEAST_KILLED = 0.95
SECONDS_A_MUTANT = 120
OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
}  # fmt: skip


class Mutant(NamedTuple):
    """A changed module: its file, the function, what the line became, and the whole source."""

    file: str
    function: str
    change: str
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        new.ops[0] = OTHER[type(node.ops[0])]()
        yield new
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OTHER:
        new.op = OTHER[type(node.op)]()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield new.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        new.value = not node.value if isinstance(node.value, bool) else 2 * node.value + (node.value in (0, 1))
        yield new
    elif isinstance(node, ast.If | ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), new.test)
        yield new
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()


def places(tree: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str, int | None, ast.AST, str]]:
    """Every (parent, field, index, node, function) whose node computes something; annotations and messages do not."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if isinstance(tree, ast.keyword) and tree.arg == "strict":  # a zip of equal lengths
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            inside = (
                f"{function}.{node.name}".strip(".") if hasattr(node, "name") and hasattr(node, "body") else function
            )
            yield tree, field, index, node, inside
            if not isinstance(node, ast.Raise):
                yield from places(node, inside)


def mutants(file: str) -> Iterator[Mutant]:
    tree = ast.parse((ROOT / file).read_text())
    for parent, field, index, node, function in list(places(tree)):
        for new in changes(node):
            if index is None:
                setattr(parent, field, new)
            else:
                getattr(parent, field)[index] = new
            lines = [ast.unparse(ast.fix_missing_locations(copy.deepcopy(each))).split("\n")[0] for each in (node, new)]
            yield Mutant(file, function, " -> ".join(lines), ast.unparse(ast.fix_missing_locations(tree)))
            if index is None:
                setattr(parent, field, node)
            else:
                getattr(parent, field)[index] = node


def tests_of(file: str) -> list[list[str]]:
    """The tests to ask, the nearest first: those that mirror the file, then all fast ones of its folder."""
    folder = "tests/theory" if file.startswith(THEORY) else "tests/core"
    names = [Path(file).stem] + (["solvers"] if "solvers/" in file else [])
    near = [path for name in names if (ROOT / (path := f"{folder}/test_{name}.py")).exists()]
    return [part for part in (near, [folder]) if part]


def run_tests(mutant: Mutant) -> int:
    """The exit code of the tests on a mutant, in a process of its own that has not yet imported the code."""
    import pytest

    get_code, target = SourceFileLoader.get_code, str(ROOT / mutant.file)
    SourceFileLoader.get_code = lambda self, name: (
        compile(mutant.source, target, "exec") if self.path == target else get_code(self, name)
    )
    signal.alarm(SECONDS_A_MUTANT)  # ends the process
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    options = ["-x", "-q", "-m", "not slow and not browser", "-p", "no:nbval", "-p", "no:cacheprovider"]
    return next((code for part in tests_of(mutant.file) if (code := pytest.main([*options, *part]))), 0)


def survivors(waiting: list[Mutant], jobs: int) -> list[Mutant]:
    """Those on which all tests pass. Each is tried in a fork of this process, which has torch imported already."""
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import torch  # noqa: F401

    running, alive, waiting = dict[int, Mutant](), list[Mutant](), waiting[::-1]
    while waiting or running:
        if waiting and len(running) < jobs:
            mutant = waiting.pop()
            if (pid := os.fork()) == 0:
                code = 1
                try:
                    code = run_tests(mutant)
                finally:
                    os._exit(code)
            running[pid] = mutant
            continue
        pid, status = os.wait()
        mutant = running.pop(pid)
        if status == 0:
            alive.append(mutant)
            print(f"survived: {mutant.file}, {mutant.function}: {mutant.change}", flush=True)
    return alive


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="only this file (can be repeated)")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    os.chdir(ROOT)
    theory = [f"{THEORY}{path.name}" for path in sorted((ROOT / THEORY).glob("*.py")) if path.name != "__init__.py"]
    files = given.only or [*(f"{CORE}{name}" for name in NAMES), *theory]
    made = {file: list(mutants(file)) for file in files}
    unchanged = [Mutant(file, "", "nothing", (ROOT / file).read_text()) for file in files]
    if len(survivors(unchanged, given.jobs)) < len(files):
        raise SystemExit("tests fail on the code as it is: mend that first")
    alive = survivors([mutant for each in made.values() for mutant in each], given.jobs)
    known = {tuple(row[:3]) for row in csv.reader(REASONS.read_text().splitlines())} if REASONS.exists() else set()
    for file, each in made.items():
        print(f"{file}: {len(each) - sum(m.file == file for m in alive)} of {len(each)} killed")
    core = sum(len(each) for file, each in made.items() if file.startswith(CORE))
    share = 1 - sum(mutant.file.startswith(CORE) for mutant in alive) / max(core, 1)
    unexplained = [mutant[:3] for mutant in alive if mutant[:3] not in known]
    print(f"core: {share:.1%} killed; survivors without a reason in {REASONS.name}: {len(unexplained)}")
    return int(share < LEAST_KILLED or bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
