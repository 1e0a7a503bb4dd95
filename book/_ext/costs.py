"""```{costs} hours```: a table of the page "From laptop to cluster", computed from stored files for every build."""

import pandas as pd
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bilevel_book import scale

WORKERS = (1, 2, 8, 64)
MODELS = {"125 million": 125e6, "1.3 billion": 1.3e9, "7 billion": 7e9}


def table(*rows: tuple[str, ...]) -> str:
    """Rows in Markdown, of which the first is the head; all columns but the first are numbers."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" + "|---:" * (len(rows[0]) - 1) + "|", *body])


def hours() -> str:
    """Each reproduction: its runs, the longest of them, and its hours with some workers."""
    found = scale.seconds()
    found |= {"**all**": [seconds for runs in found.values() for seconds in runs]}
    head = "name", "runs", "longest (min)", *(f"{n} worker{'s' * (n > 1)} (h)" for n in WORKERS)
    rows = [
        (name, str(len(runs)), f"{max(runs) / 60:.1f}", *(f"{scale.makespan(runs, n) / 3600:.2f}" for n in WORKERS))
        for name, runs in found.items()
    ]
    return table(head, *rows)


def memory() -> str:
    """What a method keeps, and what it needs at most, in multiples of the parameters."""
    found = pd.read_csv(scale.COST / "memory.csv").query("problem == 'towers'")
    found = found.assign(size=(found.dim_x + found.dim_y) / 1e6)
    kept = (found.state / found.parameters).groupby(found.method).last()
    peaks = found.pivot(index="method", columns="size", values="times").loc[found.method.unique()]
    rows = [(name, f"{kept[name]:.1f}", *(f"{n:.1f}" for n in row)) for name, row in peaks.iterrows()]
    return table(("method", "kept", *(f"peak, {size:.1f} million" for size in peaks)), *rows)


def activations() -> str:
    """A step of FdeHBO on deep towers, with activations kept and computed again."""
    found = pd.read_csv(scale.COST / "activations.csv")
    pairs = found.pivot(index="batch", columns="recompute", values=["rise", "ms"])
    rows = []
    for batch, row in pairs.iterrows():
        kept, again = (f"{row['rise'][recomputed]:.0f}" for recomputed in (False, True))
        rows.append((str(batch), kept, again, f"{row['ms'][True] / row['ms'][False]:.1f}"))
    return table(("batch", "kept (MB)", "computed again (MB)", "time, as a multiple"), *rows)


def precision() -> str:
    """The error of H v over how far y is moved."""
    found = pd.read_csv(scale.COST / "precision.csv").pivot(index="share", columns="arithmetic", values="error")
    rows = [
        (f"{share:g}" if share else "exact product", *(f"{error:.2g}" for error in row))
        for share, row in found.iterrows()
    ]
    return table(("y is moved by this part of its length", *(f"error in {name}" for name in found)), *rows)


def reweighting() -> str:
    """Plain training, then each method, for models of three sizes, and the devices that hold the largest."""
    plain = scale.Method("plain training", 1, 1, 3.0)  # Adam: the weights; its two moments and the gradient

    def row(method: scale.Method) -> tuple[str, ...]:
        cost = [scale.reweighting(size, method) for size in MODELS.values()]
        speed, memory = "float32" if method.differences else "bfloat16", scale.BYTES * (method.vectors + method.rise)
        dollars = (f"{each['dollars']:,.0f}" for each in cost)
        return method.name, str(method.passes), speed, f"{memory:.0f}", f"{cost[-1]['devices']:.0f}", *dollars

    head = "method", "passes", "arithmetic", "bytes a parameter", "devices", *(f"{name} ($)" for name in MODELS)
    return table(head, *map(row, (plain, *scale.methods())))


TABLES = {each.__name__: each for each in (hours, memory, activations, precision, reweighting)}


class Costs(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] not in TABLES:
            raise self.error(f"no table {self.arguments[0]!r}; there are {', '.join(TABLES)}")
        return [nodes.container("", *self.parse_text_to_nodes(TABLES[self.arguments[0]]()))]


def setup(app):
    app.add_directive("costs", Costs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
