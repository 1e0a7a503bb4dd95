"""The picture of the house, drawn from the imports that the files really have whenever the book is built.

    ```{house}
    ```

A room is a module or sub-package. Rooms are listed floor by floor, each above those that it imports from. An arrow
leads from a room to one that it imports: on the right if it points down, on the left, in red, if it points up.
"""

import ast
import json
from collections.abc import Iterator
from graphlib import TopologicalSorter
from html import escape
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
FLOORS = {
    "pages": "what is read",
    "bilevel_book": "what the pages share",
    "bilevel_core": "the library",
}  # from the top


class Room(NamedTuple):
    floor: str
    name: str


Arrow = tuple[Room, Room]


def sources() -> Iterator[tuple[Room, str]]:
    """Every piece of Python in the house, with its room."""
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                yield Room("pages", "chapters"), "".join(cell["source"])
    for path in sorted((ROOT / "book" / "_ext").glob("*.py")):
        yield Room("pages", "_ext"), path.read_text()
    for package in (ROOT / "book" / "bilevel_book", ROOT / "bilevel_core"):
        for path in sorted(package.rglob("*.py")):
            yield Room(package.name, path.relative_to(package).parts[0].removesuffix(".py")), path.read_text()


def imported(source: str) -> Iterator[str]:
    """The full names that a piece of Python imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def house() -> tuple[list[Room], set[Arrow]]:
    """The rooms, from the top, and the arrows."""
    pieces = list(sources())
    rooms = {room for room, _ in pieces}
    arrows = {(room, there) for room, source in pieces for name in imported(source) if (there := _room(name, rooms))}
    arrows = {(here, there) for here, there in arrows if here != there}
    used = {room for arrow in arrows for room in arrow}
    return ordered(rooms - {room for room in rooms if room.name == "__init__" and room not in used}, arrows), arrows


def _room(name: str, rooms: set[Room]) -> Room | None:
    package, *rest = name.split(".")
    if package not in FLOORS:
        return None
    there = Room(package, rest[0] if rest else "__init__")
    return there if there in rooms else Room(package, "__init__")  # a name that the package itself hands out


def ordered(rooms: set[Room], arrows: set[Arrow]) -> list[Room]:
    """Floor by floor; on a floor each room above those that it imports, and no higher than it must be."""
    height: dict[Room, int] = {}
    inside = {room: {b for a, b in arrows if a == room and b.floor == room.floor} for room in sorted(rooms)}
    for room in TopologicalSorter(inside).static_order():  # a circle is an error
        height[room] = 1 + max((height[below] for below in inside[room]), default=-1)
    floors = list(FLOORS)
    return sorted(rooms, key=lambda room: (floors.index(room.floor), -height[room], room.name))


def upward(rooms: list[Room], arrows: set[Arrow]) -> list[Arrow]:
    """The arrows that should not be there."""
    return sorted(arrow for arrow in arrows if rooms.index(arrow[0]) > rooms.index(arrow[1]))


def message(rooms: list[Room], arrows: set[Arrow]) -> str:
    """What the picture says, in words."""
    wrong = [f"{'.'.join(here)} imports {'.'.join(there)}" for here, there in upward(rooms, arrows)]
    found = f"these point up: {'; '.join(wrong)}" if wrong else "all of them point down: no room imports from above"
    return (
        f"{len(rooms)} rooms on three floors: {', '.join(FLOORS)}. {len(arrows)} arrows lead from a room to one that "
        f"it imports, and {found}."
    )


WIDTH, LINE, LEFT, RIGHT = 360, 22, 26, 132  # of the picture, of a room, and where arrows start on either side


def svg(rooms: list[Room], arrows: set[Arrow]) -> str:
    """The picture. Colours are those of the page, so that it turns dark with it."""
    places, bands, heads, y = {}, [], [], 0.0
    for floor, words in FLOORS.items():
        top, y = y, y + 1.5 * LINE
        for room in rooms:
            if room.floor == floor:
                places[room], y = y, y + LINE
        bands.append(
            f'<rect class="{floor}" x="0.5" y="{top + 0.5}" width="{WIDTH - 1}" height="{y - top - 1}" rx="6"/>'
        )
        heads.append(f'<text class="floor" x="10" y="{top + 18}">{floor}: {escape(words)}</text>')
        y += LINE / 2
    drawn = [_room_svg(room, places, {b for a, b in arrows if a == room}) for room in rooms]
    return (
        f'<svg class="house" viewBox="0 0 {WIDTH} {y - LINE / 2}" role="img" '
        f'aria-label="{escape(message(rooms, arrows))}">{"".join(bands + drawn + heads)}</svg>'
    )


def _room_svg(room: Room, places: dict[Room, float], goals: set[Room]) -> str:
    """A room with the arrows that leave it, in one group: pointing at the room brings them out."""
    here = places[room] + LINE / 2
    lines = []
    for goal in sorted(goals, key=places.__getitem__):
        there = places[goal] + LINE / 2
        up = there < here
        share = abs(there - here) / max(places.values())
        x, reach = (LEFT, -LEFT) if up else (RIGHT, (WIDTH - RIGHT - 8) * share**0.6)
        start, end, back = here + (-3 if up else 3), there + (3 if up else -3), -5 if up else 5
        lines.append(
            f'<path class="{"up" if up else "down"}" d="M{x} {start} C{x + 4 / 3 * reach:.1f} {start} '
            f'{x + 4 / 3 * reach:.1f} {end} {x} {end} l{back} -3 m{-back} 3 l{back} 3"/>'
        )
    return (
        f'<g class="room {room.floor}"><rect x="{LEFT + 2}" y="{here - LINE / 2 + 1}" width="{RIGHT - LEFT - 4}" '
        f'height="{LINE - 2}" rx="3"/><text x="{LEFT + 6}" y="{here + 4}">{room.name}</text>{"".join(lines)}</g>'
    )


class House(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", f"<figure>{svg(*house())}</figure>", format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("house", House)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
