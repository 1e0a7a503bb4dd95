"""Sliders with one behaviour in three homes: on the page, in a notebook at rest, and in a notebook that runs.

    explore(draw, alt=words, title=message, delta=between([0.1, 1.0], "δ, the step"), t=choice(range(9), "t, the time"))

`draw(delta=..., t=...)` returns a matplotlib figure, and the other two what is said about it. What a cell shows is one
piece of HTML that needs no kernel, no network and no library: it holds a frame for every place of the sliders. In
JupyterLab as `make lab` starts it (`LIVE`), no frames are drawn: the kernel draws the picture asked for, over finer
values, and the frames that the notebook's file holds for the same cell stay in its output, for the day it is opened
without a kernel. No widget is ever stored.
"""

import base64
import hashlib
import html
import io
import itertools
import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from IPython.core.getipython import get_ipython
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageFilter

from bilevel_book.progress import notebook_file

LIVE = "BILEVEL_BOOK_LIVE"  # set where a slider can reach its kernel, see book/tools.py
TARGET = "bilevel_book.sliders"
DPI, COLOURS = 130, 96  # a palette keeps a page of frames light
ASLEEP = "A still picture until its script runs: in JupyterLab say Trust Notebook, or run this cell."
ENCODING = "data:image/png;base64,"
AROUND = 3  # pixels
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_met: dict[str, "Explore"] = {}  # the sliders that a page may ask for pictures, by its key
ALIKE = 5e-5  # share of pixels in which two drawings of one picture may differ, on two machines


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


class Explore:
    """A picture with one or two sliders, each named like an argument of `draw`, of `alt`, which describes it to those
    who do not see it, and of `title`. A place is a tuple of positions, one for each slider, among its live values.
    """

    def __init__(
        self, draw: Callable[..., Figure], alt: Callable[..., str], title: Callable[..., str], **sliders: Slider
    ):
        if not 1 <= len(sliders) <= 2 or not all(isinstance(slider, Slider) for slider in sliders.values()):
            raise ValueError(
                "explore takes one or two sliders, each made by choice or between;"
                f" got {', '.join(f'{name}={value!r}' for name, value in sliders.items()) or 'none'}"
            )
        self.draw, self.alt, self.title = _keep(draw, alt, title)
        self.sliders = sliders
        self.first = tuple(slider.first * slider.every for slider in sliders.values())
        self.places = list(itertools.product(*(range(0, len(s.values), s.every) for s in sliders.values())))

    def values(self, at: Sequence[int]) -> dict[str, Any]:
        return {name: slider.values[i] for (name, slider), i in zip(self.sliders.items(), at, strict=True)}

    def words(self, at: Sequence[int]) -> dict[str, str]:
        return {"alt": self.alt(**self.values(at)), "title": self.title(**self.values(at))}

    def picture(self, at: Sequence[int]) -> Image.Image:
        # Straight from the canvas: to write a PNG and read it again would take as long as to draw it.
        figure = self.draw(**self.values(at))
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")

    def live(self, at: Sequence[int]) -> dict[str, str]:
        """What the kernel answers when a slider moves."""
        return {"src": _png(self.picture(at), compress_level=1)} | self.words(at)

    def frames(self) -> dict[str, Any]:
        """Every frame: the one at the start whole, the others where they differ from it, and see-through elsewhere."""
        pictures = {at: self.picture(at) for at in self.places}
        palette = _palette([pictures[self.places[i]] for i in (0, len(self.places) // 2, -1)])
        reduced = {at: p.quantize(palette=palette, dither=Image.Dither.NONE) for at, p in pictures.items()}
        start = reduced[self.first]
        return {
            "labels": [[_label(value) for value in slider.frames] for slider in self.sliders.values()],
            "first": [slider.first for slider in self.sliders.values()],
            "alts": [self.alt(**self.values(at)) for at in self.places],
            "titles": [self.title(**self.values(at)) for at in self.places],
            "start": _png(start, optimize=True),
            "frames": [_png(_difference(start, p), transparency=COLOURS, optimize=True) for p in reduced.values()],
        }

    def page(self, stored: dict[str, Any] | None, key: str = "", cell: str = "") -> str:
        """The HTML: with stored frames, or with a key by which the kernel knows this slider, or with both."""
        start = stored["start"] if stored else _png(self.picture(self.first), optimize=True)
        controls = "".join(
            f'<div><label><span>{html.escape(slider.label)}</span><input type="range" disabled min="0" step="1" '
            f'max="{len(slider.frames) - 1}" value="{slider.first}">'
            f'<output style="min-width: {max(len(_label(value)) for value in slider.values)}ch">'  # or it would jump
            f"{html.escape(_label(slider.frames[slider.first]))}</output></label>"
            f'<button type="button" disabled aria-label="Play {html.escape(slider.label)}">▶</button></div>'
            for slider in self.sliders.values()
        )
        data = json.dumps({name: part for name, part in (stored or {}).items() if name != "start"})
        data = data.replace("<", "\\u003c")  # must not end the script element early
        words = {name: html.escape(text) for name, text in self.words(self.first).items()}
        longest = html.escape(max(stored["titles"], key=len)) if stored else words["title"]
        return (
            f'<figure class="explore" data-live="{key}" data-cell="{cell}">\n'
            f"<style>{_beside('sliders.css')}</style>\n"
            f'<div class="explore-controls">{controls}</div>\n'
            f'<figcaption data-longest="{longest}"><span>{words["title"]}</span></figcaption>\n'
            f'<img alt="{words["alt"]}" src="{start}">\n'
            f'<p class="explore-note" role="status">{ASLEEP}</p>\n'
            f'<script type="application/json">{data}</script>\n'
            f"<script>{_beside('sliders.js')}</script>\n</figure>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        shell = get_ipython()
        source = shell.history_manager.input_hist_raw[-1] if shell and shell.history_manager else ""
        cell = hashlib.sha256(source.strip().encode()).hexdigest()[:16]
        stored, key = self._kept(cell), ""
        if os.environ.get(LIVE) and shell is not None:
            key = uuid.uuid4().hex
            _met[key] = self
            shell.kernel.comm_manager.register_target(TARGET, _opened)
        else:
            stored = stored or self.frames()
        return {"text/html": self.page(stored, key, cell), "text/plain": f"explore({', '.join(self.sliders)})"}

    def _kept(self, cell: str) -> dict[str, Any] | None:
        """The frames that the notebook's file holds for this cell, if its code and its first picture are the same."""
        for output in _stored_outputs():
            if f'data-cell="{cell}"' in output and (data := re.search(r'json">(\{.+\})</script>', output)):
                start = re.findall(r'<img [^>]*src="([^"]+)"', output)[0]
                if _alike(self.picture(self.first), start):
                    return {"start": start} | json.loads(data[1])
        return None


explore = Explore  # as a chapter calls it


def _stored_outputs() -> Iterable[str]:
    """The HTML outputs in the file of the running notebook, where its front end tells which file that is."""
    if (name := notebook_file()) and (path := Path.cwd() / Path(name).name).is_file():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                yield "".join(output.get("data", {}).get("text/html", ""))


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


def _opened(comm: Any, message: dict[str, Any]) -> None:
    slider = _met.get(message["content"]["data"]["key"])
    if slider is None:  # the slider of a kernel that is no more
        comm.close()
        return

    def answer(message: dict[str, Any]) -> None:
        try:
            comm.send(slider.live(message["content"]["data"]["at"]))
        except Exception as problem:  # the reader's own cell may fail at any value: say so beside the picture
            comm.send({"problem": f"{type(problem).__name__}: {problem}"})

    comm.on_msg(answer)
    labels = [[_label(value) for value in one.values] for one in slider.sliders.values()]
    comm.send({"labels": labels, "first": slider.first})


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


def _alike(picture: Image.Image, stored: str) -> bool:
    before = Image.open(io.BytesIO(base64.b64decode(stored.removeprefix(ENCODING))))
    if before.size != picture.size:
        return False
    now = picture.quantize(palette=before, dither=Image.Dither.NONE)
    return float(np.mean(np.asarray(now) != np.asarray(before))) <= ALIKE


def _png(picture: Image.Image, **options: Any) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG", **options)
    return ENCODING + base64.b64encode(file.getvalue()).decode()


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _label(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    digits, _, power = f"{value:.4g}".partition("e")
    if not power:
        return digits
    ten = "10" + str(int(power)).translate(RAISED)
    return ten if digits == "1" else f"{digits}·{ten}"
