"""A chapter's markdown for readers that know no MyST, such as nbconvert: boxes become quotations, labels numbers."""

import re
from collections import Counter

DIRECTIVE = re.compile(
    r"^(?P<fence>:{3,}|`{3,})\{(?P<kind>[\w:-]+)\} ?(?P<title>[^\n]*)\n(?P<options>(?::\w+:[^\n]*\n)*)"
    r"(?P<body>.*?)^(?P=fence)$",
    re.M | re.S,
)
EQUATION = re.compile(r"\n\$\$ \((?P<label>[\w:-]+)\)")
ROLE = re.compile(r"\{(?:eq|ref|prf:ref)\}`(?:[^`<]*<)?(?P<label>[\w:-]+)>?`")
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]+)\]\((?!http)[^)\s]*\)")
TARGET = re.compile(r"^\([\w:-]+\)=\n", re.M)


def numbers(chapter: int, cells: list[str]) -> dict[str, str]:
    """What the page prints for each label: (1.2) for an equation, Lemma 1.1 for a lemma."""
    text = "\n\n".join(cells)
    found = {e["label"]: f"({chapter}.{k})" for k, e in enumerate(EQUATION.finditer(text), 1)}
    count: Counter[str] = Counter()
    for box in DIRECTIVE.finditer(text):
        if (label := re.search(r"^:label: (\S+)", box["options"], re.M)) and box["kind"].startswith("prf:"):
            count[box["kind"]] += 1
            name = box["kind"].removeprefix("prf:").capitalize()
            found[label[1]] = f"{name} {chapter}.{count[box['kind']]}"
    return found


def plain(text: str, number: dict[str, str]) -> str:
    """One cell. What is folded on the page is left out, and so are proofs."""

    def box(found: re.Match[str]) -> str:
        if "dropdown" in found["options"] or found["kind"] == "prf:proof":
            return ""
        label = re.search(r"^:label: (\S+)", found["options"], re.M)
        name = number.get(label[1], "") if label else ""
        title = f"{name}: {found['title']}" if name and found["title"] else name or found["title"]
        inside = f"**{title}**\n\n{found['body'].strip()}"
        return re.sub("^", "> ", inside, flags=re.M)

    text = DIRECTIVE.sub(box, TARGET.sub("", text))
    text = EQUATION.sub(lambda found: rf" \tag{{{number[found['label']][1:-1]}}}" + "\n$$", text)
    text = ROLE.sub(lambda found: number.get(found["label"], "above"), text)
    return re.sub(r"\n{3,}", "\n\n", LINK.sub(r"\g<text>", text)).strip()
