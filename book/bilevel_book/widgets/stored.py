"""What a notebook keeps of its widgets, and how a page plays it."""

import html
import json
from collections.abc import Iterator
from typing import Any

from bilevel_book.widgets.base import HERE

VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"


def settle(notebook: Any) -> dict[str, Any]:
    """The metadata of the live widgets that outputs show, named by their place, so that a notebook that is executed
    again has no difference. Other widgets need a kernel: outputs keep the picture that they show, if there is one."""
    states, kept = states_of(notebook), dict[str, Any]()
    for data in outputs(notebook):
        key = data[VIEW]["model_id"]
        if "_esm" in states.get(key, {}).get("state", {}):
            name = f"live-{len(kept) // 2 + 1}"
            kept[f"{name}-layout"] = states[states[key]["state"]["layout"].removeprefix("IPY_MODEL_")]
            kept[name] = states[key]
            kept[name]["state"]["layout"] = f"IPY_MODEL_{name}-layout"
            data[VIEW]["model_id"] = name
        else:
            del data[VIEW]
            data.update(picture(states, key))
    kept = as_lab_writes(kept)
    return {"widgets": {STATE: {"state": kept, "version_major": 2, "version_minor": 0}}} if kept else {}


def as_lab_writes(value: Any) -> Any:
    """JavaScript has one kind of number: 2.0 is saved as 2."""
    if isinstance(value, dict):
        return {name: as_lab_writes(part) for name, part in value.items()}
    if isinstance(value, list):
        return [as_lab_writes(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def live(notebook: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The data of every output that shows a live widget, and the widget's traits."""
    states = states_of(notebook)
    for data in outputs(notebook):
        traits = states.get(data[VIEW]["model_id"], {}).get("state", {})
        if "_esm" in traits:
            yield data, traits


def states_of(notebook: Any) -> dict[str, Any]:
    return notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})


def outputs(notebook: Any) -> Iterator[dict[str, Any]]:
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if VIEW in output.get("data", {}):
                yield output["data"]


def picture(states: dict[str, Any], key: str) -> dict[str, Any]:
    """What the Output widget inside a widget shows, as with ipywidgets.interact."""
    state = states.get(key, {}).get("state", {})
    for output in state.get("outputs", []):
        if "image/png" in output.get("data", {}):
            return dict(output["data"])
    found = (picture(states, child.removeprefix("IPY_MODEL_")) for child in state.get("children", []))
    return next((each for each in found if each), {})


def element(traits: dict[str, Any], picture: str, script: str | None = None) -> str:
    """The place of a widget on a page: its picture, and the script that plays it, here or at an address."""
    play = f"<script>{playing(traits)}</script>" if script is None else f'<script async src="{script}"></script>'
    return f'<div data-widget><img src="{picture}" alt="{html.escape(traits["alt"])}">{play}</div>'


def playing(traits: dict[str, Any]) -> str:
    """A script that plays a widget where it stands."""
    own = {name: value for name, value in traits.items() if not name.startswith("_")}
    given = {"source": traits["_esm"], "css": traits["_css"], "traits": own}
    given = json.dumps(given).replace("<", "\\u003c")  # must not end the script element early
    return f"{(HERE / 'host.js').read_text(encoding='utf-8')}playWidget({given});\n"
