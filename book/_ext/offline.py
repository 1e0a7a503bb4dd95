"""Keep the built pages free of code that can only work online.

jupyter-book always loads sphinx-thebe, whose scripts fetch their code from the network when used and, included twice by
the theme, log an error on every page. The book has no live kernels on its pages, so the scripts are left out.
"""


def drop_thebe(app, pagename, templatename, context, doctree):
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if not _is_thebe(file)]


def _is_thebe(file) -> bool:
    return "thebe" in f"{getattr(file, 'filename', file)} {getattr(file, 'attributes', '')}".lower()


def setup(app):
    app.connect("html-page-context", drop_thebe, priority=999)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
