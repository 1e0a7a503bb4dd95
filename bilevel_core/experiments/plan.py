"""Reading: the file of an experiment, decoded once, checked key by key, and turned into runs."""

import hashlib
import inspect
import itertools
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any, get_args, get_origin

from bilevel_core import problems
from bilevel_core.problem import BilevelProblem
from bilevel_core.runner import check_budget
from bilevel_core.schedules import Power, Steps
from bilevel_core.solvers import SOLVERS, Solver

PROBLEMS: dict[str, type[BilevelProblem]] = {name: getattr(problems, name) for name in problems.__all__}
BUDGET = tuple(inspect.signature(check_budget).parameters)
Options = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """What a label stands for: a solver, its options, and what it changes in the problem."""

    solver: str
    options: Options
    problem: Options


@dataclass(frozen=True)
class Group:
    """Runs of one size: their methods by label, their seeds, whether lists of values are a grid, how long they run."""

    methods: dict[str, Method]
    seeds: list[int]
    grid: bool
    budget: Options


@dataclass(frozen=True)
class Experiment:
    """A file: the problem with its options, the columns of the report, tables of methods, and groups by size."""

    name: str
    problem: str
    options: Options
    columns: list[str]
    tables: dict[str, dict[str, Method]]
    sizes: dict[str, dict[str, Group]]


@dataclass(frozen=True)
class Run:
    """One run of a sweep; everything in it is plain data, so that it can be compared, stored and sent to a worker."""

    experiment: str
    group: str
    label: str
    solver: str
    options: Options
    problem: str
    problem_options: Options
    seed: int
    budget: Options

    @property
    def name(self) -> str:
        """group/label_seed, as a file name."""
        return f"{self.group}/{re.sub(r'[^A-Za-z0-9.]+', '_', self.label).strip('_')}_{self.seed}"

    @cached_property
    def as_json(self) -> Options:
        """As it comes back from a JSON, which has no infinity."""
        content: Options = json.loads(json.dumps(asdict(self)), parse_constant=lambda constant: "inf")
        return content

    @cached_property
    def fingerprint(self) -> str:
        """Changes with anything that changes the run."""
        return hashlib.sha256(json.dumps(self.as_json).encode()).hexdigest()[:12]

    def make_solver(self) -> Solver:
        solver: Solver = _class(self.solver, SOLVERS, Solver)(**_with_schedules(self.options))
        return solver

    def make_problem(self) -> BilevelProblem:
        given = dict(self.problem_options)
        if "seed" in _parameters(_class(self.problem, PROBLEMS, BilevelProblem)):
            given.setdefault("seed", self.seed)
        return _problem(self.problem, json.dumps(given))


@lru_cache(maxsize=2)
def _problem(name: str, options: str) -> BilevelProblem:
    problem: BilevelProblem = _class(name, PROBLEMS, BilevelProblem)(**json.loads(options))
    return problem


def names() -> list[str]:
    """The experiments that come with the package."""
    return list(_shipped())


def load(experiment: str | os.PathLike[str]) -> Experiment:
    """What the file of an experiment says: one that comes with the package, by its name, or any TOML file, by its path.

    Whatever is wrong with the file is a ValueError that names the place, what was given and what is allowed.
    """
    path = Path(experiment)
    if path.suffix != ".toml":
        path = _shipped()[_known(str(experiment), _shipped(), "experiment (or give the path of a TOML file)")]
    elif not path.is_file():
        raise ValueError(f"there is no file {path}")
    with _at(path.name):
        return _decode(path.stem.replace("_", "-"), path.read_text())


def paper_settings(experiment: str, solver: str) -> Options:
    """The keyword arguments of a method in the main comparison of an experiment.

    What the paper states is as it states it; for the rest the experiment's file says what was chosen and why.
    """
    main = load(experiment).tables["main"]
    return _with_schedules(main[_known(solver, main, f"method of {experiment}")].options)


def sweep(
    experiment: str | os.PathLike[str], size: str, groups: list[str] | None = None, labels: list[str] | None = None
) -> list[Run]:
    """All runs of an experiment at one size, or those of some groups and labels, each checked before any is started."""
    file = load(experiment)
    plan = file.sizes[_known(size, file.sizes, f"size of {file.name}")]
    runs = [run for name, group in plan.items() for run in _runs(file, name, group)]
    for run in runs:
        with _at(f"{file.name}, {run.group}, {run.label}"):
            run.make_solver()
    for name, count in Counter(run.name for run in runs).items():
        if count > 1:
            raise ValueError(f"{count} runs of {file.name} would be stored as {name}: give them other labels")
    for group in groups or []:
        _known(group, plan, f"group of {file.name}, size {size},")
    for label in labels or []:
        _known(label, {run.label: run for run in runs}, f"label of {file.name}, size {size},")
    return [run for run in runs if run.group in (groups or [run.group]) and run.label in (labels or [run.label])]


def _runs(file: Experiment, name: str, group: Group) -> Iterator[Run]:
    for seed, (label, method) in itertools.product(group.seeds, group.methods.items()):
        problem = file.options | method.problem
        for full, options in _combinations(label, method.options) if group.grid else [(label, method.options)]:
            yield Run(file.name, name, full, method.solver, options, file.problem, problem, seed, group.budget)


def _combinations(label: str, options: Options) -> Iterator[tuple[str, Options]]:
    """One (label, options) for every combination of the values in lists."""
    lists = {key: value for key, value in options.items() if isinstance(value, list)}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        yield ", ".join([label, *(f"{key} {value}" for key, value in chosen.items())]), options | chosen


# Decoding


@lru_cache(maxsize=16)
def _decode(name: str, text: str) -> Experiment:
    content = tomllib.loads(text)
    problem, options = _take(content, "problem", str), _take(content, "options", dict, {})
    columns, sizes = _take(content, "columns", list[str], []), _take(content, "sizes", dict)
    with _at("problem"):
        kind = _class(problem, PROBLEMS, BilevelProblem)
    with _at("options"):
        _check_options(options, kind)
    tables = {
        table: {label: _method(content, table, label, kind) for label in _checked(table, entries, dict)}
        for table, entries in content.items()
    }
    groups: dict[str, dict[str, Group]] = {}
    for size, plans in sizes.items():
        with _at(f"[sizes.{size}]"):
            groups[size] = {
                group: _group(group, plan, tables, kind) for group, plan in _checked(size, plans, dict).items()
            }
    return Experiment(name, problem, options, columns, tables, groups)


def _method(content: Options, table: str, label: str, problem: type, *followed: str) -> Method:
    with _at(f'[{table}."{label}"]'):
        entry, base = dict(_checked(label, content[table][label], dict)), Method(label, {}, {})
        if "like" in entry:
            others = [other for other in content.get("main", {}) if other not in followed]
            like = _known(_take(entry, "like", str), others, "label of [main]")
            base = _method(content, "main", like, problem, *followed, like)
        solver, changes = _take(entry, "solver", str, base.solver), _take(entry, "problem", dict, {})
        _check_options(entry, _class(solver, SOLVERS, Solver))
        _check_options(changes, problem)
        return Method(solver, base.options | entry, base.problem | changes)


def _group(name: str, content: Any, tables: Mapping[str, dict[str, Method]], problem: type) -> Group:
    with _at(name):
        plan = dict(_checked(name, content, dict))
        table = tables[_known(_take(plan, "methods", str, name), tables, "table of methods")]
        seeds, grid = _take(plan, "seeds", list[int]), _take(plan, "grid", bool, False)
        settings, changes = _take(plan, "settings", dict, {}), _take(plan, "problem", dict, {})
        only = [_known(label, table, "label") for label in _take(plan, "only", list[str], list(table))]
        for key in plan:
            _known(key, ("seeds", "methods", "only", "problem", "settings", "grid", *BUDGET), "key")
        check_budget(**plan)
        _check_options(changes, problem)
        methods = {}
        for label in only:
            _check_options(settings, _class(table[label].solver, SOLVERS, Solver))
            method = table[label]
            methods[label] = Method(method.solver, method.options | settings, method.problem | changes)
        return Group(methods, seeds, grid, plan)


@contextmanager
def _at(place: str) -> Iterator[None]:
    """An error inside is told with its place in the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _known(given: str, known: Collection[str], what: str) -> str:
    if given not in known:
        raise ValueError(f"unknown {what} {given!r}; known are {', '.join(known)}")
    return given


def _take(table: Options, key: str, hint: Any, default: Any = None) -> Any:
    """Remove a key from a table; without a default it must be there."""
    return _checked(key, table.pop(key, default), hint)


def _checked(key: str, value: Any, hint: Any) -> Any:
    if not _fits(value, hint):
        given = "nothing" if value is None else repr(value)
        raise ValueError(
            f"{key}: got {given}, allowed: {getattr(hint, '__name__', hint) if not get_args(hint) else hint}"
        )
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of a file is of the type asked for; a type that no file can give is not judged."""
    plain = {bool: (bool,), int: (int,), float: (int, float), str: (str,), dict: (dict,), type(None): ()}
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_fits(part, *get_args(hint)) for part in value)
    return any(kind not in plain or type(value) in plain[kind] for kind in get_args(hint) or (hint,))


def _check_options(options: Options, owner: type) -> None:
    parameters = _parameters(owner)
    for key, value in options.items():
        hint = parameters[_known(key, parameters, f"option of {owner.__name__}")].annotation
        for part in value if isinstance(value, list) else [value]:  # a list is a grid
            _checked(key, _schedule(part), hint)


def _parameters(owner: Any) -> dict[str, inspect.Parameter]:
    return dict(list(inspect.signature(owner.__init__).parameters.items())[1:])  # without self


def _with_schedules(options: Options) -> Options:
    return {name: _schedule(value) for name, value in options.items()}


def _schedule(value: Any) -> Any:
    """A table is a schedule; anything else is what it is."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"values", "at"}:
        return Steps(tuple(value["values"]), tuple(value["at"]))
    for key in value:
        _known(key, ("c", "w", "p", "cap"), "part of a schedule")
    return Power(**value)


def _class(name: str, known: Mapping[str, type], kind: type) -> Any:
    """One of the known classes, or the one at "package.module:Class"."""
    if ":" not in name:
        return known[_known(name, known, f'{kind.__name__} (or give "package.module:Class")')]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name} cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ValueError(f"{name} is not a {kind.__name__}")
    return found


def _shipped() -> dict[str, Path]:
    folder = Path(str(resources.files("bilevel_core.configurations")))
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.toml"))}
