"""The command line: python -m bilevel_book COMMAND NAME, or doctor; --help lists the commands."""

import argparse
import sys
from concurrent.futures import BrokenExecutor
from functools import partial
from pathlib import Path

from bilevel_book.paths import experiment_file, shipped_experiments

JUDGED = ("hyper-representation", "hyper-cleaning")  # the experiments of the paper


def parser() -> argparse.ArgumentParser:
    names = ", ".join(shipped_experiments())
    top = argparse.ArgumentParser(prog="python -m bilevel_book", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--results", type=Path, default=Path("results"), help="where results are kept; default results")
    both = argparse.ArgumentParser(add_help=False, parents=[folder])
    both.add_argument("name", help=f"the experiment: {names}, or the path of a TOML file")
    both.add_argument("--size", default="smoke", help="smoke (a minute) or full (hours); default smoke")
    again = commands.add_parser("reproduce", parents=[both], help="do the runs that are not stored yet")
    again.add_argument("--dask", metavar="ADDRESS", help="the address of a Dask scheduler, whose workers do them")
    again.add_argument("--replace", action="store_true", help="do runs again that are stored with other settings")
    told = commands.add_parser("report", parents=[both], help="print tables of the runs that are stored")
    commands.add_parser("calibrate", parents=[both], help="measure what a step of each method costs")
    clock = commands.add_parser("clock", parents=[both], help="measure what a step costs along a run")
    clock.add_argument("--reading", choices=("alone", "busy"), default="alone")
    clock.add_argument("--rounds", type=int, default=10, help="how often each method takes its turn; default 10")
    noise = commands.add_parser("variance", parents=[folder], help="measure how noisy a method's direction of x is")
    noise.add_argument("name", choices=JUDGED, help="the experiment")
    check = commands.add_parser("verify", parents=[both], help="redo the first rows of the stored runs and compare")
    check.add_argument("--rows", type=int, default=1, help="how many rows after the start; default 1")
    for command in (again, told, check):
        command.add_argument("--data", metavar="NAME", help="FashionMNIST, KMNIST or CIFAR10 in place of MNIST")
    for command in (again, check):
        command.add_argument("--jobs", type=int, default=1, help="how many runs side by side, each on one thread")
        command.add_argument("--group", action="append", help="only this group of runs (can be repeated)")
        command.add_argument("--label", action="append", help="only the runs of this label (can be repeated)")
    judge = commands.add_parser("verdicts", parents=[folder], help="print each claim of the paper with its verdict")
    judge.add_argument("name", choices=JUDGED, help="the experiment")
    commands.add_parser("doctor", help="say what this installation has, what it lacks, and what to do")
    return top


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        if given.command == "doctor":
            from bilevel_book.doctor import report

            return report()
        do(given)
    except (ValueError, OSError, ImportError, BrokenExecutor) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def do(given: argparse.Namespace) -> None:
    experiment_file(given.name)  # what is wrong with the arguments is told before anything heavy is imported
    for name in ("jobs", "rows"):
        if (value := getattr(given, name, 1)) < 1:
            raise ValueError(f"--{name} must be at least 1, got {value}")
    if given.command == "verdicts":
        return verdicts(given.name, given.results)
    from bilevel_book import experiments

    if given.command == "calibrate":
        return print(f"stored in {experiments.calibrate(given.name, given.size)}")
    if given.command == "clock":
        from bilevel_book.experiments.clock import measure_clock

        return measure_clock(given.name, given.size, given.reading, given.rounds)
    if given.command == "variance":
        from bilevel_book.experiments.variance import measure_variance

        return measure_variance(given.name, given.results)
    data = {"data": given.data} if given.data else {}
    results = given.results / (given.data or "") / ("smoke" if given.size == "smoke" else "")
    if given.command == "report":
        return experiments.report(given.name, results, given.size, **data)
    if given.command == "verify":
        runs = experiments.sweep(given.name, given.size, given.group, given.label, results, **data)
        return verify(runs, results, given)
    from bilevel_book.experiments.running import reproduce_in_order

    plan = experiments.Plan(experiments.load(given.name, **data), given.size, results)
    options = {"jobs": given.jobs, "dask": given.dask, "replace": given.replace}
    done, total = reproduce_in_order(plan, given.group or [*plan.groups], given.label, **options)
    print(f"{done} runs done, {total - done} were there already, in {results / plan.file.name}")


def verify(runs: list, results: Path, given: argparse.Namespace) -> None:
    from bilevel_book.experiments.verification import verify_all

    found = verify_all(runs, results, given.rows, given.jobs)
    mismatches = [each.mismatch for each in found if each.mismatch]
    print(*mismatches, sep="\n", end="\n" * bool(mismatches))
    rows = sum(each.rows for each in found)
    agree = len(found) - len(mismatches)
    print(f"{agree} of {len(runs)} runs in {results} agree with the code; {rows} rows were compared")
    if mismatches:
        raise ValueError(f"{len(mismatches)} runs do not agree")


def verdicts(name: str, results: Path) -> None:
    from bilevel_book import ledger
    from bilevel_book.verdicts.paper import sentence

    for claim in ledger.of_experiment(name, partial(sentence, results=results)):
        where = f"{claim.where}; {claim.apart}" if claim.apart else claim.where
        print(f"\n[{claim.verdict}] {claim.text} ({where})\n    {claim.measure}: {claim.numbers}")


if __name__ == "__main__":
    sys.exit(main())
