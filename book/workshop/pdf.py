"""The built pages as PDF, by Chromium's print: each page alone, the theorem as a paper, and the whole book."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from pypdf import PdfWriter

from bilevel_book import address
from bilevel_book.doctor import browser
from workshop import ROOT

HTML = ROOT / "_build" / "html"
TARGET = HTML / "pdf"
FOOT = '<div style="font-size: 8px; width: 100%; text-align: center"><span class="pageNumber"></span></div>'

THEOREM, TITLE = "13_the_theorem", "The rate of FdeHBO and FMBO, with a complete proof"
# Of that chapter a paper has these sections, under the theme's heading for print, without the numbers of sections and
# the list of contents. Its references are written out, and its links lead to the published pages, if there are any.
AS_PAPER = """([title, pages]) => {
  const names = {"what-it-says": "Abstract", "assumptions": "", "the-theorem-and-its-corollaries": "",
                 "the-proof": "", "further-reading": "References"};
  document.querySelector("#jb-print-docs-body h1").textContent = title;
  document.querySelector("#print-main-content").remove();
  const paper = document.querySelector("section#the-theorem");
  for (const part of [...paper.children]) {
    if (!(part.id in names)) part.remove();
    else if (names[part.id]) part.querySelector("h2").textContent = names[part.id];
  }
  paper.querySelectorAll(".section-number").forEach(number => number.remove());
  const list = paper.querySelector("#further-reading").appendChild(document.createElement("ol"));
  for (const work of new Set([...paper.querySelectorAll("a[href*='bibliography']")].map(link => link.title)))
    list.appendChild(document.createElement("li")).textContent = work;
  const here = location.href.split("#")[0], root = new URL("..", here).href;
  for (const link of paper.querySelectorAll("a[href]"))
    if (pages) link.href = link.href.replace(root, pages);
    else if (link.href.split("#")[0] !== here) link.replaceWith(...link.childNodes);
  paper.insertAdjacentHTML("beforeend", "<style>.proof, .admonition { break-inside: auto !important }</style>");
}"""


def pdf(*names: str) -> None:
    """Print the pages, or those whose file name starts so, into _build/html/pdf; the whole book if none is named."""
    if (chromium := browser()) is None:
        sys.exit("No Chromium on this machine: install Debian's package chromium.")
    TARGET.mkdir(exist_ok=True)
    made = []
    with sync_playwright() as playwright:
        tab = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]).new_page()
        tab.set_default_timeout(0)  # a page of formulas takes minutes where the machine is busy
        for page in in_order():
            if not names or page.name.startswith(names):
                print(f"{page.stem} ...", flush=True)
                made.append((printed(tab, page), tab.title().partition(" — ")[0]))
                if page.stem == THEOREM:
                    printed(tab, page, "paper", AS_PAPER)
    if not names:
        joined(made, TARGET / "book.pdf")
    print(f"Open {TARGET}")


def in_order() -> Iterable[Path]:
    """The pages of the book, as its list for programs has them."""
    for link in re.findall(r"^- \[[^\]]+\]\((\S+)\)", (HTML / "llms.txt").read_text(encoding="utf-8"), re.M):
        yield HTML / link.removeprefix(address.pages())


def printed(tab: Page, page: Path, end: str = "", change: str = "() => 0") -> Path:
    """Its file, made when every formula is set and changed; what is folded for a reader's sake opens by itself."""
    tab.goto(page.as_uri())
    tab.evaluate("window.MathJax?.startup?.promise.then(() => true)")
    tab.evaluate(change, [TITLE, address.pages()])
    parts = [*page.relative_to(HTML).with_suffix("").parts[1:], *filter(None, [end])]
    path = TARGET / ("-".join(parts) + ".pdf")  # api-running, 01_what...
    tab.pdf(
        path=path,
        format="A4",
        margin=dict.fromkeys(("top", "bottom", "left", "right"), "18mm"),
        scale=0.8,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOT,
        outline=True,
        tagged=True,
    )
    return path


def joined(parts: list[tuple[Path, str]], target: Path) -> Path:
    """One file of all, with an entry in its outline for each."""
    whole = PdfWriter()
    for path, title in parts:
        whole.append(path, outline_item=title, import_outline=False)
    whole.write(target)
    return target
