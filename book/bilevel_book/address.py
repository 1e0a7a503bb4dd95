"""Where the book is published: `repository.url` in _config.yml alone says it, empty until the book has an address."""

import yaml

from bilevel_book.paths import ROOT


def repository() -> str:
    """https://github.com/OWNER/NAME, or nothing."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]


def pages() -> str:
    """Where GitHub shows the pages, https://OWNER.github.io/NAME/, or nothing."""
    if not repository():
        return ""
    owner, name = repository().rstrip("/").split("/")[-2:]
    return f"https://{owner}.github.io/{name}/"
