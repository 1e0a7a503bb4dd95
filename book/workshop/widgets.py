"""The picture of each live widget, taken in Chromium as a page shows it: for paper, GitHub, notebooks not trusted."""

import base64
import io
import sys
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from bilevel_book.doctor import browser
from bilevel_book.widgets.stored import element, live

PAGE = '<!doctype html><meta charset="utf-8"><body style="width: 660px; margin: 0; font-family: sans-serif">'


def photograph(notebook: Any) -> None:
    """Put its picture beside each live widget of a notebook, when it has drawn all that it draws by itself."""
    shown = list(live(notebook))
    if not shown:
        return
    if (chromium := browser()) is None:
        sys.exit("No Chromium on this machine, which takes the pictures of widgets: install Debian's package chromium.")
    with sync_playwright() as playwright:
        tab = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]).new_page(
            device_scale_factor=1.5, reduced_motion="reduce"
        )
        tab.emulate_media(media="print")  # without its controls
        for data, traits in shown:
            tab.set_content(PAGE + element(traits, ""))
            figure = tab.locator("figure.live:not([data-working])")
            figure.wait_for(timeout=120_000)
            small = io.BytesIO()
            Image.open(io.BytesIO(figure.screenshot())).convert("RGB").quantize(96).save(small, "PNG", optimize=True)
            data["image/png"] = base64.b64encode(small.getvalue()).decode()
