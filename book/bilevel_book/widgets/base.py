"""What all widgets share: an ES module that computes in the page, and a class whose traits are its dials.

Drawn as SVG by hand. JSXGraph weighs three times the 300 kB allowed and uPlot has no points to drag; D3's scales and
axes would save some 40 of the 500 lines of stage.js, and neither dials, nor addresses, nor the colours of a dark page.
"""

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import traitlets
from anywidget import AnyWidget

HERE = Path(__file__).parent
NUMBERS = itertools.count(1)
IMPORT = re.compile(r'^import [^;]*from "\./(\w+)\.js";\n', re.M)


def module(name: str) -> str:
    """One ES module: `name`.js after all that it imports, each file once; only `name`.js exports."""
    parts: dict[str, str] = {}

    def collect(one: str) -> None:
        source = (HERE / f"{one}.js").read_text(encoding="utf-8")
        for other in IMPORT.findall(source):
            if other not in parts:
                collect(other)
        parts[one] = IMPORT.sub("", source)

    collect(name)
    last = parts.pop(name)
    return "\n".join([*(re.sub(r"^export ", "", part, flags=re.M) for part in parts.values()), last])


class Dial(traitlets.CFloat):
    """A number between two ends; a number outside is moved to the nearer end. `log`: its slider goes by ratios."""

    whole = False

    def __init__(self, start: float, low: float, high: float, label: str, log: bool = False):
        super().__init__(start)
        self.tag(sync=True)
        self.described = {"label": label, "min": low, "max": high, "log": log, "whole": self.whole}

    def validate(self, obj: Any, value: Any) -> Any:
        number = super().validate(obj, value)
        if math.isnan(number):
            self.error(obj, value)
        return min(max(number, self.described["min"]), self.described["max"])


class Whole(Dial):
    """A whole number."""

    whole = True

    def validate(self, obj: Any, value: Any) -> Any:
        return round(super().validate(obj, value))


class Choice(traitlets.Enum):
    """One of a few words."""

    def __init__(self, options: Sequence[str], label: str):
        super().__init__([*options], options[0])
        self.tag(sync=True)
        self.described = {"label": label, "options": [*options]}


class Live(AnyWidget):
    """A widget whose module computes. Keywords are where its dials start; `show` names the dials that are in sight.

    After a change in the page `path` has what the module has computed.
    """

    name = ""  # of its module, and in addresses
    sight = ""  # the dials in sight, in their order
    dials = traitlets.List().tag(sync=True)
    made = traitlets.Dict().tag(sync=True)  # what the library hands over
    path = traitlets.Dict().tag(sync=True)
    alt = traitlets.Unicode().tag(sync=True)  # for those who do not see the picture

    def __init__(self, show: str | None = None, **start: Any):
        dials = {name: trait for name, trait in self.class_traits(sync=True).items() if hasattr(trait, "described")}
        names = (self.sight if show is None else show).split()
        if unknown := {*start, *names} - {*dials}:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}; it has {', '.join(dials)}")
        self._esm, self._css = self.code().values()
        # The ids that `settle` gives: a notebook that is run and saved in Lab still finds the state that it came with.
        start["model_id"] = f"live-{next(NUMBERS)}"
        super().__init__(alt=" ".join((type(self).__doc__ or "").split()), made=self.make(), **start)
        order = [*names, *(name for name in dials if name not in names)]
        self.dials = [
            {"name": name, "shown": name in names, "start": getattr(self, name)} | dials[name].described
            for name in order
        ]

    @classmethod
    def code(cls) -> dict[str, str]:
        return {"_esm": module(cls.name), "_css": (HERE / "widgets.css").read_text(encoding="utf-8")}

    def make(self) -> dict[str, Any]:
        """What the module cannot draw at random or read from a file itself."""
        return {}

    def __repr__(self) -> str:
        given = ", ".join(f"{dial['name']}={getattr(self, dial['name'])!r}" for dial in self.dials if dial["shown"])
        return f"{type(self).__name__}({given})"
