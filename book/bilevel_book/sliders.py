"""Sliders over pictures, for what only Python can compute: the second kind of widget, with stored frames.

    explore(draw, alt=words, title=message, delta=between([0.1, 1.0], "δ, the step"), t=choice(range(9), "t, the time"))

`draw(delta=..., t=...)` returns a matplotlib figure, and the other two what is said about it. Where a notebook is
executed for nobody, as by `make notebooks`, a frame is drawn for every place of the sliders and stored. Where a reader
looks, the kernel draws the place that is asked for, over finer values.
"""

import base64
import io
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import traitlets
from IPython.core.getipython import get_ipython
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageFilter

from bilevel_book.progress import notebook_file
from bilevel_book.widgets.base import Live

DPI, COLOURS = 130, 96  # a palette keeps a page of frames light
AROUND = 3  # pixels
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Slider:
    """`label` is "symbol, words"; a kernel moves over all `values`, stored frames over each `every`-th of them."""

    label: str
    values: list[Any]
    every: int = 1
    start: Any = None

    @property
    def frames(self) -> list[Any]:
        return self.values[:: self.every]

    @property
    def first(self) -> int:
        return self.frames.index(self.frames[0] if self.start is None else self.start)


def choice(values: Iterable[Any], label: str, start: Any = None, every: int = 1) -> Slider:
    """A slider over given values; frames show each `every`-th."""
    slider = Slider(label, list(values), every, start)
    if not all(label.partition(", ")):
        raise ValueError(f'the label of a slider is "symbol, words", got {label!r}')
    if len(slider.frames) < 2:
        raise ValueError(f"the slider {label!r} has {len(slider.frames)} values to stop at; give two or more")
    if start is not None and start not in slider.frames:
        raise ValueError(f"the slider {label!r} starts at {start!r}, which is not among its frames: {slider.frames}")
    return slider


def between(values: Sequence[float], label: str, start: Any = None, finer: int = 4) -> Slider:
    """A slider whose frames show `values` and that a live kernel moves in `finer` steps from each to the next.

    The finer steps are even in ratios where the values are, over a factor of 20; a zero in front of them may stay.
    """
    positive = [value for value in values if value > 0]
    wide = min(values) >= 0 and max(values) >= 20 * min(positive)
    ratios = wide and _uneven(np.log(positive)) <= _uneven(positive)
    live = [values[0]]
    for low, high in itertools.pairwise(values):
        parts = [k / finer for k in range(1, finer)]
        inside = (low * (high / low) ** part if ratios and low else low + (high - low) * part for part in parts)
        live += [*(float(f"{value:.3g}") for value in inside), high]
    return choice(live, label, start, finer)


def _uneven(places: Any) -> float:
    """The longest step over the shortest."""
    steps = np.abs(np.diff(places))
    return float(steps.max() / steps.min())


class Explore(Live):
    """A picture with one or two sliders, each named like an argument of `draw`, of `alt`, which describes it to those
    who do not see it, and of `title`. A place is a tuple of positions, one for each slider, among its live values.
    """

    name = "frames"
    known_as = traitlets.Unicode().tag(sync=True)  # in addresses
    asked = traitlets.List().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(
        self, draw: Callable[..., Figure], alt: Callable[..., str], title: Callable[..., str], **sliders: Slider
    ):
        if not 1 <= len(sliders) <= 2 or not all(isinstance(slider, Slider) for slider in sliders.values()):
            raise ValueError(
                "explore takes one or two sliders, each made by choice or between;"
                f" got {', '.join(f'{name}={value!r}' for name, value in sliders.items()) or 'none'}"
            )
        self.draw, self.describe, self.entitle = _keep(draw, alt, title)
        self.sliders = sliders
        self.first = tuple(slider.first * slider.every for slider in sliders.values())
        self.places = list(itertools.product(*(range(0, len(s.values), s.every) for s in sliders.values())))
        super().__init__()
        self.known_as, self.alt = "-".join(sliders), self.describe(**self.values(self.first))
        self.add_traits(**{name: traitlets.Int().tag(sync=True) for name in sliders})
        self.dials = [
            {"name": name, "label": slider.label, "shown": True, "whole": True, "min": 0, "max": len(slider.values) - 1}
            | {"step": slider.every, "start": start, "labels": [_label(value) for value in slider.values]}
            for (name, slider), start in zip(sliders.items(), self.first, strict=True)
        ]
        for name, start in zip(sliders, self.first, strict=True):
            setattr(self, name, start)
        self.observe(self._answer, "asked")

    def make(self) -> dict[str, Any]:
        """Every frame, if nobody looks; else the first one alone."""
        if notebook_file():
            return {"start": _png(self.picture(self.first)), "title": self.entitle(**self.values(self.first))}
        return self.frames()

    def values(self, at: Sequence[int]) -> dict[str, Any]:
        return {name: slider.values[i] for (name, slider), i in zip(self.sliders.items(), at, strict=True)}

    def picture(self, at: Sequence[int]) -> Image.Image:
        # Straight from the canvas: to write a PNG and read it again would take as long as to draw it.
        figure = self.draw(**self.values(at))
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")

    def _answer(self, change: Any) -> None:
        """What the kernel says when it is asked for a place; the reader's own cell may fail at any value."""
        at = change["new"]
        try:
            words = {"alt": self.describe(**self.values(at)), "title": self.entitle(**self.values(at))}
            self.answer = {"at": at, "src": _png(self.picture(at), compress_level=1)} | words
        except Exception as problem:
            self.answer = {"at": at, "problem": f"{type(problem).__name__}: {problem}"}

    def frames(self) -> dict[str, Any]:
        """Every frame: the one at the start whole, the others where they differ from it, and see-through elsewhere."""
        pictures = {at: self.picture(at) for at in self.places}
        palette = _palette([pictures[self.places[i]] for i in (0, len(self.places) // 2, -1)])
        reduced = {at: p.quantize(palette=palette, dither=Image.Dither.NONE) for at, p in pictures.items()}
        start = reduced[self.first]
        return {
            "alts": [self.describe(**self.values(at)) for at in self.places],
            "titles": [self.entitle(**self.values(at)) for at in self.places],
            "title": self.entitle(**self.values(self.first)),
            "start": _png(start, optimize=True),
            "frames": [_png(_difference(start, p), transparency=COLOURS, optimize=True) for p in reduced.values()],
        }

    def __repr__(self) -> str:
        return f"explore({', '.join(self.sliders)})"


explore = Explore  # as a chapter calls it


def _keep(*parts: Any) -> list[Any]:
    """Functions of the notebook with its names as they are now: a later cell may call something else `problem`."""
    shell = get_ipython()
    theirs = shell.user_ns if shell else None
    ours = dict(theirs or {})

    def keep(value: Any) -> Any:
        if not (isinstance(value, FunctionType) and value.__globals__ is theirs):
            return value
        kept = FunctionType(value.__code__, ours, value.__name__, value.__defaults__, value.__closure__)
        kept.__kwdefaults__ = value.__kwdefaults__
        return kept

    ours.update({name: keep(value) for name, value in ours.items()})
    return [keep(part) for part in parts]


def _palette(some: list[Image.Image]) -> Image.Image:
    """One palette for all frames, or colours would flicker."""
    sheet = Image.new("RGB", (max(p.width for p in some), sum(p.height for p in some)))
    for i, picture in enumerate(some):
        sheet.paste(picture, (0, sum(p.height for p in some[:i])))
    # Maximum coverage keeps the colours of small marks; k-means then moves the palette to the true shades.
    palette = sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2)
    shades = np.array(palette.getpalette()).reshape(-1, 3)
    shades[(shades >= 248).all(1)] = 255  # the ground stays white: Pillow does not tell such shades apart
    palette.putpalette(shades.flatten().tolist())
    return palette


def _difference(start: Image.Image, picture: Image.Image) -> Image.Image:
    """`picture` with the colour COLOURS, which is see-through, wherever it and its neighbours agree with `start`."""
    if picture.size != start.size:
        raise ValueError(f"draw must return figures of one size, got {start.size} and {picture.size} pixels")
    before, now = np.asarray(start), np.asarray(picture)
    # What lies around a change is kept, too: scaled down, it would let what was there shine through.
    changed = Image.fromarray(now != before).convert("L").filter(ImageFilter.MaxFilter(2 * AROUND + 1))
    result = Image.fromarray(np.where(np.asarray(changed), now, COLOURS).astype(np.uint8))
    result.putpalette([*(picture.getpalette() or [])[: 3 * COLOURS], 255, 255, 255])
    return result


def _png(picture: Image.Image, **options: Any) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG", **options)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _label(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    digits, _, power = f"{value:.4g}".partition("e")
    if not power:
        return digits
    ten = "10" + str(int(power)).translate(RAISED)
    return ten if digits == "1" else f"{digits}·{ten}"
