"""Plain Sphinx builds the book with what _config.yml says, without Jupyter Book: `make sphinx`.

What Jupyter Book adds by itself stands here. If it is given up one day, this file moves to the root.
"""

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
for folder in set(CONFIG["sphinx"]["local_extensions"].values()):
    sys.path.insert(0, str(ROOT / folder))

project = html_title = CONFIG["title"]
author, copyright = CONFIG["author"], CONFIG["copyright"]
exclude_patterns = CONFIG["exclude_patterns"]
extensions = [
    "myst_nb", "sphinx_book_theme", "sphinx_copybutton", "sphinx_design", "sphinx_external_toc", "sphinx_togglebutton",
    "sphinx_multitoc_numbering", "sphinx.ext.intersphinx", "sphinxcontrib.bibtex",
    *CONFIG["sphinx"]["extra_extensions"], *CONFIG["sphinx"]["local_extensions"],
]  # fmt: skip
external_toc_path = str(ROOT / "_toc.yml")
external_toc_exclude_missing = CONFIG["only_build_toc_files"]
bibtex_bibfiles = [str(ROOT / path) for path in CONFIG["bibtex_bibfiles"]]
myst_enable_extensions = CONFIG["parse"]["myst_enable_extensions"]
nb_execution_mode = CONFIG["execute"]["execute_notebooks"]
numfig = use_multitoc_numbering = True

options = dict(CONFIG["sphinx"]["config"])
for folders in ("html_static_path", "templates_path"):  # Sphinx counts them from this folder, _config.yml from the root
    options[folders] = [str(ROOT / folder) for folder in options[folders]]
globals().update(options)

html_theme = "sphinx_book_theme"
html_logo = html_favicon = str(ROOT / CONFIG["logo"])
html_sourcelink_suffix = ""
html_theme_options = options["html_theme_options"] | {
    "search_bar_text": "Search this book...",
    "repository_url": CONFIG["repository"]["url"],
    "repository_branch": CONFIG["repository"]["branch"],
    "launch_buttons": CONFIG["launch_buttons"],
    "home_page_in_toc": CONFIG["html"]["home_page_in_navbar"],
    **{name: CONFIG["html"][name] for name in ("extra_footer", "use_repository_button", "use_issues_button")},
}
