"""The command line of the book: python -m bilevel_book verdicts NAME | select NAME | baselines | doctor."""

import argparse
import sys
from functools import cache, partial
from pathlib import Path

from bilevel_book import baselines, doctor, ledger
from bilevel_book.ledger.evidence import runs_of
from bilevel_book.paths import RESULTS
from bilevel_book.protocol import selection, sentences
from bilevel_core.doctor import report

JUDGED = ("hyper-representation", "hyper-cleaning")  # the experiments of the paper


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bilevel_book", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    judge = commands.add_parser("verdicts", help="print each claim with its numbers and its verdict")
    judge.add_argument("name", choices=JUDGED, help="the experiment")
    choose = commands.add_parser("select", help="print what stored trials decide, as text for the experiment's file")
    choose.add_argument("name", help="the experiment, or the path of a TOML file")
    choose.add_argument("--metric", default=selection.LOSS, help=f"what decides; default {selection.LOSS}")
    clean = commands.add_parser("baselines", help="find wrong labels without a bilevel method, and store how well")
    clean.add_argument("--seed", type=int, action="append", help="only this seed (can be repeated)")
    for command in (judge, choose, clean):
        command.add_argument(
            "--results", type=Path, default=RESULTS, help="where results are kept; default those of the book"
        )
    commands.add_parser("doctor", help="say what this installation has, what it lacks, and what to do")
    given = parser.parse_args(arguments)
    if given.command == "doctor":
        return report(doctor.CHECKS)
    try:
        {"verdicts": verdicts, "select": select, "baselines": clean_labels}[given.command](given)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def verdicts(given: argparse.Namespace) -> None:
    case = cache(partial(sentences.case, folder=given.results))
    for claim in ledger.of_experiment(given.name, runs_of(given.name, given.results), case):
        where = f"{claim.where}; {claim.apart}" if claim.apart else claim.where
        print(f"\n[{claim.verdict}] {claim.text} ({where})\n    {claim.measure}: {claim.numbers}")


def select(given: argparse.Namespace) -> None:
    for entry, groups in selection.DECIDED_BY.items():
        told = selection.missing(given.name, entry, given.results)
        print(f"# {entry}, by {' and '.join(groups)}" + (f": {told}" if told else ""))
        if told:
            return
        print(selection.as_toml(entry, selection.choose(given.name, entry, given.results, given.metric)))


def clean_labels(given: argparse.Namespace) -> None:
    for seed in given.seed or baselines.SEEDS:
        print(f"stored in {baselines.store(seed, given.results)}")


if __name__ == "__main__":
    sys.exit(main())
