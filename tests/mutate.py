"""make mutate: change one thing at a time in the code, and see whether a test fails.

A mutant is a module in which one comparison, operator, number, condition or statement is another one. It is killed if a
test fails or runs out of time: a fast one of its folder, or a slow one of its own file of tests. A survivor is either a
gap in the tests or changes nothing that a user could see: then `survivors.csv` says why. `mutants.csv` has the numbers
of each file as it was tried last. The command fails where a survivor has no reason, or fewer than 95 % are killed.

    python tests/mutate.py [--only FILE] [--jobs N]
"""

import argparse
import ast
import copy
import csv
import gc
import importlib
import inspect
import itertools
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
REASONS, NUMBERS = ROOT / "tests" / "survivors.csv", ROOT / "tests" / "mutants.csv"
CORE, THEORY = "bilevel_core/", "book/bilevel_book/theory/"
NAMES = ("directions.py", "implicit.py", "runner.py", "checkpoint.py", "solvers/base.py", "solvers/fmbo.py",
         "solvers/fdehbo.py", "solvers/soba.py", "solvers/alternating.py")  # fmt: skip
LEAST_KILLED = 0.95
CPU_SECONDS_A_MUTANT, WALL_SECONDS_A_MUTANT = 300, 1200  # the tests of unchanged code take a quarter of it
OPTIONS = "-s", "-qq", "--tb=no", "--assert=plain", "-p", "no:nbval", "-p", "no:cacheprovider"
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


def lookup(module: ModuleType, function: str) -> FunctionType | None:
    """The function of this name, or the one in which it is defined; none for what a class or a module computes."""
    found: object = module
    for name in function.split("."):
        found = vars(found).get(name)
        found = getattr(found, "fget", getattr(found, "func", getattr(found, "__func__", found)))
        found = inspect.unwrap(found) if callable(found) else found
        if isinstance(found, FunctionType):
            return found
    return None


def is_changed_in_place(mutant: Mutant) -> bool:
    """Give the function in question the code and defaults of the mutant, wherever it is referred to, if there is one.

    What classes, constants and tests compute when they are imported stays as it was.
    """
    name = mutant.file.removeprefix("book/").removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    if (function := lookup(module, mutant.function)) is None:
        return False
    fresh = ModuleType(name)
    vars(fresh).update(__file__=module.__file__, __package__=module.__package__)
    exec(compile(mutant.source, str(ROOT / mutant.file), "exec"), vars(fresh))
    changed = lookup(fresh, mutant.function)
    function.__code__, function.__defaults__ = changed.__code__, changed.__defaults__
    function.__kwdefaults__ = changed.__kwdefaults__
    return True


def import_anew(mutant: Mutant) -> None:
    """Forget what was imported of the project; when it is imported again, the mutant's file is the mutant."""
    for name, module in list(sys.modules.items()):
        file = str(getattr(module, "__file__", None))
        if file.startswith(str(ROOT)) and "/.venv/" not in file and name != "__main__":
            del sys.modules[name]
    get_code, target = SourceFileLoader.get_code, str(ROOT / mutant.file)
    SourceFileLoader.get_code = lambda self, name: (
        compile(mutant.source, target, "exec") if self.path == target else get_code(self, name)
    )


class Mutation:
    """For pytest: run the tests once, then those that concern it on each mutant, in a fork that has them at hand."""

    def __init__(self, files: list[str], jobs: int) -> None:
        self.files, self.jobs = files, jobs
        self.killers = tempfile.NamedTemporaryFile("a")  # noqa: SIM115
        self.made, self.alive = dict[str, int](), dict[str, list[Mutant]]()

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.default, phases=[Phase.generate], report_multiple_bugs=False)
        settings.load_profile("mutants")  # looks for no smaller example

    def pytest_collection_modifyitems(self, items: list) -> None:
        items[:] = [item for item in items if any(concerns(item, file) for file in self.files)]

    def pytest_runtestloop(self, session) -> bool:
        with tempfile.NamedTemporaryFile("a+") as costs:
            if (pid := os.fork()) == 0:  # a thread that a test leaves behind would block the forks of this process
                os._exit(measure(session.items, costs))
            if os.waitpid(pid, 0)[1]:
                raise SystemExit("tests fail on the code as it is: mend that first")
            costs.seek(0)
            self.costs = {test: float(cost) for test, cost in (line.rsplit(maxsplit=1) for line in costs)}
        gc.freeze()  # or each fork would look through all of torch for garbage
        for file in self.files:
            made = list(mutants(file))
            self.made[file], self.alive[file] = len(made), list(self.survivors(made, session.items))
            killed = len(made) - len(self.alive[file])
            rows = dict(row.split(",", 1) for row in NUMBERS.read_text().splitlines())
            rows[file] = f"{len(made)},{killed}"
            NUMBERS.write_text("".join(f"{name},{numbers}\n" for name, numbers in rows.items()))
            print(f"{file}: {killed} of {len(made)} killed", flush=True)
        return True

    def survivors(self, made: list[Mutant], items: list) -> Iterator[Mutant]:
        """Those on which all tests pass."""
        running, waiting = dict[int, Mutant](), made[::-1]
        while waiting or running:
            if waiting and len(running) < self.jobs:
                mutant = waiting.pop()
                if (pid := os.fork()) == 0:
                    code = 1
                    try:
                        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
                        code = self.try_tests(mutant, items)
                    finally:
                        os._exit(code)
                running[pid] = mutant
                continue
            pid, status = os.wait()
            mutant = running.pop(pid)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:  # look: was the machine only busy?
                print("out of time:", ", ".join(mutant[:3]), flush=True)
            if status == 0:
                print("survived:", ", ".join(mutant[:3]), flush=True)
                yield mutant

    def try_tests(self, mutant: Mutant, items: list) -> int:
        """Whether a test fails on a mutant: what killed others lately is tried first, then its own tests."""
        import pytest

        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_A_MUTANT)  # ends the process, as the alarm does
        signal.alarm(WALL_SECONDS_A_MUTANT)
        when = {test: -number for number, test in enumerate(Path(self.killers.name).read_text().splitlines(), 1)}
        some = [item for item in items if concerns(item, mutant.file)]
        own = own_tests(mutant.file)
        some.sort(key=lambda item: (when.get(item.nodeid, 0), not item.nodeid.startswith(own), self.costs[item.nodeid]))
        if is_changed_in_place(mutant) and (killer := next((item.nodeid for item in some if not passes(item)), "")):
            print(killer, file=self.killers, flush=True)
            return 1
        import_anew(mutant)  # for what is computed on import, too
        return int(pytest.main([*OPTIONS, "-x", *(item.nodeid for item in some)]))


def concerns(item, file: str) -> bool:
    """Whether a test is tried on the mutants of a file: fast ones of its folder, slow ones of its own file of tests."""
    folder = "tests/core/" if file.startswith(CORE) else "tests/theory/"
    return item.nodeid.startswith(folder if item.get_closest_marker("slow") is None else own_tests(file))


def own_tests(file: str) -> str:
    """How the names of the tests of a file begin."""
    if not file.startswith(CORE):
        return "tests/theory/"
    return f"tests/core/test_{'solvers' if 'solvers/' in file else Path(file).stem}.py"


def measure(items: list, costs: IO[str]) -> int:
    """Write what each test costs on the code as it is; 1 if one fails."""
    for item in items:
        start = time.thread_time()
        if not passes(item):
            return 1
        print(item.nodeid, time.thread_time() - start, file=costs, flush=True)
    return 0


def passes(item) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def main() -> int:
    import pytest

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="only this file (can be repeated)")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    os.chdir(ROOT)
    theory = [f"{THEORY}{path.name}" for path in sorted((ROOT / THEORY).glob("*.py"))]
    files = given.only or [*(f"{CORE}{name}" for name in NAMES), *theory]
    reasons = {tuple(row[:3]): row[3] for row in csv.reader(REASONS.read_text().splitlines()) if row[0] in files}
    mutation = Mutation(files, given.jobs)
    folders = [f"tests/{name}" for name in ("core", "theory") if any(name in file for file in files)]
    if pytest.main([*OPTIONS, *folders], plugins=[mutation]) != 0:
        raise SystemExit("pytest could not run")
    alive = {mutant[:3] for file in files for mutant in mutation.alive[file]}
    print("survivors without a reason:", *(alive - reasons.keys()), sep="\n")
    print("reasons for what did not survive:", *(reasons.keys() - alive), sep="\n")
    failed = bool(alive - reasons.keys())
    for part in (CORE, THEORY):
        made = sum(count for file, count in mutation.made.items() if file.startswith(part))
        survived = sum(len(some) for file, some in mutation.alive.items() if file.startswith(part))
        failed |= survived > (1 - LEAST_KILLED) * made
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
