"""Reading: the file of an experiment, found by its name or its path, decoded once and checked key by key."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from bilevel_core import problems
from bilevel_core.budget import Budget
from bilevel_core.experiments.checks import at, check_options, find_class, known, typed
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Steps
from bilevel_core.solvers import SOLVERS, Solver

PROBLEMS = {name: getattr(problems, name) for name in problems.__all__}
Options = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """What a label stands for: a solver, its options, and what it changes in the problem."""

    solver: str
    options: Options
    problem: Options


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one size: the table of their methods and which of them, what holds for all, and how long they run."""

    methods: str
    only: list[str]
    seeds: list[int]
    problem: Options = field(default_factory=dict)
    settings: Options = field(default_factory=dict)
    grid: bool = False
    steps: int | None = None
    seconds: float | None = None
    every: int | list[int] | None = None
    rows: int | None = None

    @property
    def budget(self) -> Options:
        given = {"steps": self.steps, "seconds": self.seconds, "every": self.every, "rows": self.rows}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Experiment:
    """A file: the problem with its options, the columns of the report, tables of methods, and groups by size."""

    name: str
    problem: str
    options: Options
    columns: list[str]
    tables: dict[str, dict[str, Method]]
    sizes: dict[str, dict[str, Group]]


def names() -> list[str]:
    """The experiments that come with the package."""
    return list(_shipped())


def _shipped() -> dict[str, Path]:
    folder = Path(str(resources.files("bilevel_core.configurations")))
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.toml"))}


def load(experiment: str | os.PathLike[str]) -> Experiment:
    """What the file of an experiment says: one that comes with the package, by its name, or any TOML file, by its path.

    Whatever is wrong with the file is a ValueError that names the place, what was given and what is allowed.
    """
    path = Path(experiment)
    if path.suffix != ".toml":
        path = _shipped()[known(str(experiment), _shipped(), "experiment (or give the path of a TOML file)")]
    elif not path.is_file():
        raise ValueError(f"there is no file {path}")
    with at(path.name):
        return _decode(path.stem.replace("_", "-"), path.read_text())


@lru_cache(maxsize=16)
def _decode(name: str, text: str) -> Experiment:
    content = tomllib.loads(text)
    problem, options = _take(content, "problem", str), _take(content, "options", dict, {})
    columns, sizes = _take(content, "columns", list[str], []), _take(content, "sizes", dict)
    with at("problem"):
        problem_type = find_class(problem, PROBLEMS, BilevelProblem)
    with at("options"):
        check_options(options, problem_type)
    tables = {
        table: {label: _method(content, table, label, problem_type) for label in typed(table, entries, dict)}
        for table, entries in content.items()
    }
    groups = {
        size: {
            group: _group(size, group, plan, tables, problem_type) for group, plan in typed(size, plans, dict).items()
        }
        for size, plans in sizes.items()
    }
    return Experiment(name, problem, options, columns, tables, groups)


def _take(table: Options, key: str, hint: Any, default: Any = None) -> Any:
    """Remove a key from a table; without a default it must be there."""
    return typed(key, table.pop(key, default), hint)


def _method(content: Options, table: str, label: str, problem: type, *followed: str) -> Method:
    with at(f'[{table}."{label}"]'):
        entry, base = dict(typed(label, content[table][label], dict)), Method(label, {}, {})
        if "like" in entry:
            others = [other for other in content.get("main", {}) if other not in followed]
            like = known(_take(entry, "like", str), others, "label of [main]")
            base = _method(content, "main", like, problem, *followed, like)
        solver, changes = _take(entry, "solver", str, base.solver), _take(entry, "problem", dict, {})
        check_options(changes, problem)
        _check_settings(entry, solver)
        return Method(solver, base.options | entry, base.problem | changes)


def _group(size: str, name: str, plan: Any, tables: Mapping[str, Mapping[str, Method]], problem: type) -> Group:
    with at(f"[sizes.{size}] {name}"):
        given = {"methods": name, "only": [], "seeds": None} | typed(name, plan, dict)
        check_options(given, Group)
        table = tables[known(given["methods"], tables, "table of methods")]
        group = Group(**given | {"only": given["only"] or list(table)})
        Budget(**group.budget)  # which checks it
        check_options(group.problem, problem)
        for label in group.only:
            _check_settings(group.settings, table[known(label, table, "label in `only`")].solver)
        return group


def _check_settings(settings: Options, solver: str) -> None:
    for key, value in settings.items():
        for part in value if isinstance(value, list) else [value]:  # a list is a grid
            check_options(with_schedules({key: part}), find_class(solver, SOLVERS, Solver))


def with_schedules(options: Options) -> Options:
    """Options as a solver takes them: a table of the file is a schedule."""
    return {key: _schedule(**value) if isinstance(value, dict) else value for key, value in options.items()}


def _schedule(**given: Any) -> Power | Steps:
    if given.keys() == {"values", "at"}:
        return Steps(tuple(_take(given, "values", list[float])), tuple(_take(given, "at", list[int])))
    check_options(given, Power)
    return Power(**given)
