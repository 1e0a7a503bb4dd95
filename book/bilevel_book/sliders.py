"""Sliders that live twice: with a kernel they are widgets, on a printed page they turn precomputed frames.

    explore(draw, alt="...", delta=[0.01, 0.1, 1.0], r_v=[1, 10])

`draw(delta=..., r_v=...)` returns a matplotlib figure. The result shows itself in a notebook; the stored output holds
every frame, so that the built book needs no kernel, no network and no library. Equal figures give equal bytes.
"""

import base64
import hashlib
import html
import io
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

DPI, COLOURS = 130, 96  # a palette keeps a page of frames light
ENCODING = "data:image/png;base64,"


def explore(
    draw: Callable[..., Figure],
    alt: str | Callable[..., str],
    start: dict[str, Any] | None = None,
    **grid: Sequence[Any],
) -> "Explore":
    """One slider for each name in `grid` over its values; `start` says where sliders stand first.

    `alt` describes the picture in words: a text, or a function of the sliders' values that returns one.
    """
    return Explore(draw, alt, start or {}, grid)


class Explore:
    """See `explore`."""

    def __init__(self, draw: Callable[..., Figure], alt: str | Callable[..., str], start: dict, grid: dict):
        if not 1 <= len(grid) <= 2 or any(len(values) < 2 for values in grid.values()):
            shape = {name: len(values) for name, values in grid.items()}
            raise ValueError(f"explore takes one or two sliders of at least two values each, got {shape or 'none'}")
        for name, value in start.items():
            if value not in list(grid.get(name, [])):
                raise ValueError(f"start says {name} = {value!r}, which is not among the values of a slider")
        self.draw, self.alt = draw, alt
        self.grid = {name: list(values) for name, values in grid.items()}
        self.first = [values.index(start.get(name, values[0])) for name, values in self.grid.items()]
        self.places = list(itertools.product(*(range(len(values)) for values in self.grid.values())))
        self._frames: dict[tuple[int, ...], bytes] = {}
        self._palette: Image.Image | None = None
        self._drawn: dict[tuple[int, ...], Image.Image] = {}

    def values(self, at: Sequence[int]) -> dict[str, Any]:
        return {name: values[i] for (name, values), i in zip(self.grid.items(), at, strict=True)}

    def frame(self, at: Sequence[int]) -> bytes:
        """The picture at these positions of the sliders, as a PNG with few colours."""
        if (at := tuple(at)) not in self._frames:
            palette, small = self.palette, io.BytesIO()
            self._picture(at).quantize(palette=palette, dither=Image.Dither.NONE).save(small, "PNG")
            self._frames[at] = small.getvalue()
        return self._frames[at]

    @property
    def palette(self) -> Image.Image:
        """One palette for all frames, or colours would flicker: from the first, the middle and the last of them."""
        if self._palette is None:
            shown = [self.places[i] for i in (0, len(self.places) // 2, -1)]
            some = [self._picture(at) for at in shown]
            self._drawn = dict(zip(shown, some, strict=True))  # they are frames too
            sheet = Image.new("RGB", (max(p.width for p in some), sum(p.height for p in some)))
            for i, picture in enumerate(some):
                sheet.paste(picture, (0, sum(p.height for p in some[:i])))
            # Maximum coverage keeps the colours of small marks; k-means then moves the palette to the true shades.
            self._palette = sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2)
        return self._palette

    def _picture(self, at: tuple[int, ...]) -> Image.Image:
        if at in self._drawn:
            return self._drawn.pop(at)
        # Straight from the canvas: to write a PNG and read it again would take as long as to draw it.
        figure = self.draw(**self.values(at))
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")

    def describe(self, at: Sequence[int]) -> str:
        values = self.values(at)
        if callable(self.alt):
            return self.alt(**values)
        return f"{self.alt} Here " + ", ".join(f"{name} = {_label(value)}" for name, value in values.items()) + "."

    def widget(self) -> ipywidgets.Widget:
        """The live form: moving a slider asks the kernel for the picture."""
        sliders = [
            ipywidgets.SelectionSlider(
                options=[(_label(value), i) for i, value in enumerate(values)], index=first, description=name
            )
            for (name, values), first in zip(self.grid.items(), self.first, strict=True)
        ]
        picture = ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="36rem"))

        def show(_: Any = None) -> None:
            picture.value = self.frame([slider.value for slider in sliders])

        for slider in sliders:
            slider.observe(show, "value")
        show()
        return ipywidgets.VBox([ipywidgets.HBox(sliders), picture])

    def page(self) -> str:
        """The printed form: HTML that holds every frame and needs nothing else."""
        data = {
            "labels": [[_label(value) for value in values] for values in self.grid.values()],
            "alts": [self.describe(at) for at in self.places],
            "frames": [base64.b64encode(self.frame(at)).decode() for at in self.places],
        }
        text = json.dumps(data).replace("</", "<\\/")  # must not end the script element early
        controls = "".join(
            f"<label><span>{html.escape(name)}</span>"
            f'<input type="range" min="0" max="{len(values) - 1}" step="1" value="{first}">'
            f'<output style="min-width: {max(len(_label(value)) for value in values)}ch">'  # or the slider would jump
            f"{html.escape(_label(values[first]))}</output></label>"
            for (name, values), first in zip(self.grid.items(), self.first, strict=True)
        )
        return _PAGE.format(
            mark="explore-" + hashlib.sha256(text.encode()).hexdigest()[:12],
            controls=controls,
            alt=html.escape(self.describe(self.first)),
            first=ENCODING + base64.b64encode(self.frame(self.first)).decode(),
            data=text,
            encoding=ENCODING,
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = self.widget()._repr_mimebundle_()
        bundle = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return bundle | {"text/html": self.page(), "text/plain": f"explore({', '.join(self.grid)})"}


def _label(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_PAGE = """<figure class="explore {mark}" data-lm-suppress-shortcuts="true">
<div class="explore-controls">{controls}</div>
<img alt="{alt}" src="{first}">
<script type="application/json">{data}</script>
<script>document.querySelectorAll("figure.{mark}:not([data-ready])").forEach(function (figure) {{
  figure.dataset.ready = "yes";
  var data = JSON.parse(figure.querySelector("script").textContent);
  var picture = figure.querySelector("img");
  var sliders = figure.querySelectorAll("input"), shown = figure.querySelectorAll("output");
  function show() {{
    var k = 0;
    sliders.forEach(function (slider, i) {{
      var label = data.labels[i][slider.value];
      k = k * data.labels[i].length + Number(slider.value);
      shown[i].textContent = label;
      slider.setAttribute("aria-valuetext", label);
    }});
    picture.src = "{encoding}" + data.frames[k];
    picture.alt = data.alts[k];
  }}
  sliders.forEach(function (slider) {{ slider.addEventListener("input", show); }});
  show();
}});</script>
</figure>"""
