"""The server of JupyterLab as `make lab` starts it."""

import json
from pathlib import Path


def keep_version(model, path, contents_manager, **_):
    """A notebook keeps the version of Python that its file names: to open it with another one changes nothing."""
    file = Path(contents_manager.root_dir) / path.strip("/")
    if model["type"] == "notebook" and model.get("content") and file.is_file():
        stored = json.loads(file.read_text(encoding="utf-8"))["metadata"].get("language_info")
        if stored and "language_info" in model["content"]["metadata"]:
            model["content"]["metadata"]["language_info"] = stored


c.ContentsManager.pre_save_hook = keep_version  # noqa: F821 (`c` is the configuration, given by Jupyter)
