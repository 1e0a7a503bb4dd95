"""The book in several versions side by side: a folder for each, and on every page the way to the others.

python book/tools.py site 1.0        adds the built book to _build/site, or puts it in the place of the 1.0 there
python book/tools.py site dev SITE   adds it to another folder, which holds what was published before

A page names its own address, so its copy names that of its folder. The list of versions is written anew into every one
of them, as a script, since pages that are opened from disk may not fetch.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from bilevel_book import address
from workshop import ROOT

HTML = ROOT / "_build" / "html"
NAMES = re.compile(r"dev|\d+\.\d+")
FRONT = "book/index.html"
GO_ON = (
    '<!doctype html>\n<meta charset="utf-8">\n<title>{0}</title>\n<meta http-equiv="refresh" content="0; url={0}">\n'
)
GO_ON += '<a href="{0}">The book</a>\n'


def site(name: str, folder: str = str(ROOT / "_build" / "site")) -> None:
    """Put the built book into the folder under this name, and link the versions that are there."""
    if not NAMES.fullmatch(name):
        sys.exit(f"A version of the book is called dev or as 1.0 is, not {name!r}.")
    if not (HTML / FRONT).is_file():
        sys.exit(f"There is no book in {HTML}: say make book.")
    base, target = address.pages(), Path(folder) / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(HTML, target)
    named = (*target.rglob("*.html"), target / "sitemap.xml", target / "llms.txt") if base else ()
    for path in named:
        text = path.read_text(encoding="utf-8").replace(base, f"{base}{name}/")
        if path == target / "404.html":  # it is shown at any address, so its links begin at the top
            text = text.replace(f'href="{urlsplit(base).path}', f'href="{urlsplit(base).path}{name}/')
        path.write_text(text, encoding="utf-8")
    link(Path(folder))
    print(f"Open {Path(folder) / 'index.html'}")


def link(folder: Path) -> None:
    """Tell every version of all; the top leads to the newest release, or to dev while there is none."""
    found = {path.name: path for path in folder.iterdir() if NAMES.fullmatch(path.name)}
    names = sorted(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)  # dev last
    pages = {name: sorted(p.relative_to(found[name]).as_posix() for p in found[name].rglob("*.html")) for name in names}
    every = [{"name": name, "front": FRONT, "pages": pages[name]} for name in names]
    for name in names:
        words = f"window.bookVersions = {json.dumps({'here': name, 'all': every})};\n"
        (found[name] / "_static" / "versions.js").write_text(words, encoding="utf-8")
    (folder / "index.html").write_text(GO_ON.format(f"{names[0]}/{FRONT}"), encoding="utf-8")
    for shared in ("404.html", "sitemap.xml", "llms.txt"):
        if (found[names[0]] / shared).is_file():
            shutil.copy(found[names[0]] / shared, folder)
