"""make mutate: change one thing at a time in the code, and see whether a test fails.

A mutant is a module in which one comparison, operator, number, condition or statement is another one. It is killed if a
test fails or runs out of time: a fast one of its folder, or a slow one of its own file of tests. A survivor is either a
gap in the tests or changes nothing that a user could see: then `survivors.csv` says why. `mutants.csv` has the numbers
of each file as it was tried last. The command fails where a survivor has no reason, or fewer than 95 % are killed.

    python tests/mutate.py [--only FILE] [--jobs N]
"""

import argparse
import ast
import contextlib
import copy
import csv
import gc
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REASONS, NUMBERS = ROOT / "tests" / "survivors.csv", ROOT / "tests" / "mutants.csv"
CORE, THEORY = "bilevel_core/", "book/bilevel_book/theory/"
NAMES = ("directions.py", "implicit.py", "runner.py", "checkpoint.py", "solvers/base.py", "solvers/fmbo.py",
         "solvers/fdehbo.py", "solvers/soba.py", "solvers/alternating.py")  # fmt: skip
LEAST_KILLED = 0.95
CPU_SECONDS_A_MUTANT, WALL_SECONDS_A_MUTANT = 300, 1200  # the tests of unchanged code take a quarter of it
NO_TESTS = 5  # the exit code of pytest where it finds none
MOST_KILLERS = 5
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


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """(part of the node, what may stand in its place)."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.Compare):
        for index, op in enumerate(node.ops):
            new.ops[index] = OTHER[type(op)]()
            yield node, f"({ast.unparse(new)})"
            new.ops[index] = op
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OTHER:
        new.op = OTHER[type(node.op)]()
        yield node, ast.unparse(new) if isinstance(node, ast.stmt) else f"({ast.unparse(new)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield node, repr(not node.value if isinstance(node.value, bool) else 2 * node.value + (node.value in (0, 1)))
    elif isinstance(node, ast.If | ast.IfExp):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, f"pass  # {ast.unparse(node)}"


def places(tree: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every (node, function) that computes something; annotations and messages do not."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if isinstance(tree, ast.keyword) and tree.arg == "strict":  # a zip of equal lengths
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr):
                continue
            named = isinstance(node, ast.FunctionDef | ast.ClassDef)
            inside = f"{function}.{node.name}".strip(".") if named else function
            yield node, inside
            if not isinstance(node, ast.Raise):
                yield from places(node, inside)


def mutants(file: str) -> Iterator[Mutant]:
    source = (ROOT / file).read_bytes()
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    for node, function in places(ast.parse(source)):
        for part, text in changes(node):
            start, end = starts[part.lineno - 1] + part.col_offset, starts[part.end_lineno - 1] + part.end_col_offset
            changed = (source[:start] + text.encode() + source[end:]).decode()
            yield Mutant(file, function, changed.splitlines()[part.lineno - 1].strip(), changed)


class Recorder:
    """For pytest: writes down which test killed a mutant, so that it is tried first on the next."""

    def __init__(self, killers: Path) -> None:
        self.killers = killers

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            with self.killers.open("a") as file:
                file.write(f"{report.nodeid}\n")


def run_tests(mutant: Mutant, killers: Path) -> int:
    """The exit code of the tests on a mutant, in a process of its own that has not yet imported the code.

    What costs least comes first: tests that killed others lately, the file's own, its folder, its own slow ones.
    """
    import pytest

    get_code, target = SourceFileLoader.get_code, str(ROOT / mutant.file)
    SourceFileLoader.get_code = lambda self, name: (
        compile(mutant.source, target, "exec") if self.path == target else get_code(self, name)
    )
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_A_MUTANT)  # ends the process, as the alarm does
    signal.alarm(WALL_SECONDS_A_MUTANT)
    folder = own = "tests/theory"
    if mutant.file.startswith(CORE):
        folder = "tests/core"
        own = f"{folder}/test_{'solvers' if 'solvers/' in mutant.file else Path(mutant.file).stem}.py"
    lately = list(dict.fromkeys(reversed(killers.read_text().splitlines())))[:MOST_KILLERS]
    options = ["-x", "--tb=no", "--assert=plain", "-p", "no:nbval", "-p", "no:cacheprovider"]
    rest = dict.fromkeys((("-m", "not slow", own), ("-m", "not slow", folder), ("-m", "slow", own)))
    for tests in [lately, *rest] if lately else rest:
        code = pytest.main([*options, *tests], plugins=[Recorder(killers)])
        if code not in (0, NO_TESTS):
            return code
    return 0


def survivors(waiting: list[Mutant], jobs: int) -> Iterator[Mutant]:
    """Those on which all tests pass. Each is tried in a fork of this process, which has torch imported already."""
    import pandas  # noqa: F401
    import pytest
    import torch  # noqa: F401

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        pytest.main(["--markers", "-p", "no:nbval"])  # imports conftest.py and all plugins
    from hypothesis import Phase, settings

    settings.register_profile("mutants", settings.default, phases=[Phase.generate], report_multiple_bugs=False)
    settings.load_profile("mutants")  # looks for no smaller example
    gc.freeze()  # or each fork would look through all of torch for garbage
    running, waiting = dict[int, Mutant](), waiting[::-1]
    with tempfile.NamedTemporaryFile() as killers:
        while waiting or running:
            if waiting and len(running) < jobs:
                mutant = waiting.pop()
                if (pid := os.fork()) == 0:
                    code = 1
                    try:
                        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
                        code = run_tests(mutant, Path(killers.name))
                    finally:
                        os._exit(code)
                running[pid] = mutant
                continue
            pid, status = os.wait()
            mutant = running.pop(pid)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:  # look: was the machine only busy?
                print("out of time:", ", ".join(mutant[:3]), flush=True)
            if status == 0:
                yield mutant


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="only this file (can be repeated)")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    os.chdir(ROOT)
    theory = [f"{THEORY}{path.name}" for path in sorted((ROOT / THEORY).glob("*.py"))]
    files = given.only or [*(f"{CORE}{name}" for name in NAMES), *theory]
    unchanged = {file.startswith(THEORY): Mutant(file, "", "", (ROOT / file).read_text()) for file in files}
    if len(list(survivors(list(unchanged.values()), given.jobs))) < len(unchanged):
        raise SystemExit("tests fail on the code as it is: mend that first")
    made = [mutant for file in files for mutant in mutants(file)]
    reasons = {tuple(row[:3]): row[3] for row in csv.reader(REASONS.read_text().splitlines()) if row[0] in files}
    alive, failed = list[Mutant](), False
    for mutant in survivors(made, given.jobs):
        alive.append(mutant)
        failed |= mutant[:3] not in reasons
        print("survived:", ", ".join(mutant[:3]), f"({reasons.get(mutant[:3], 'NO REASON')})", flush=True)
    rows = {row[0]: row for row in csv.reader(NUMBERS.read_text().splitlines())}
    for part in (*files, CORE, THEORY):
        if count := sum(mutant.file.startswith(part) for mutant in made):
            killed = count - sum(mutant.file.startswith(part) for mutant in alive)
            failed |= part in (CORE, THEORY) and killed < LEAST_KILLED * count
            rows |= {part: [part, count, killed]} if part in files else {}
            print(f"{part}: {killed} of {count} killed")
    NUMBERS.write_text("".join(f"{','.join(map(str, rows[name]))}\n" for name in rows))
    print("reasons for what did not survive:", *(reasons.keys() - {mutant[:3] for mutant in alive}), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
