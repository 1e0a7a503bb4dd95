"""Questions at the end of a chapter, as one piece of HTML that needs no kernel, no network and no library.

    quiz("01")

They stand in quizzes.toml. A text may hold maths, $\\Phi(x)$, and `code`. Exactly one answer of a question is right:

    [[01]]
    ask = "Which problem is solved first?"
    answers = [
      { text = "The lower one.", right = true, why = "The upper level sees only its answer." },
      { text = "The upper one.", why = "It cannot judge $x$ before $y^*(x)$ is known." },
    ]
"""

import html
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUIZZES = HERE / "quizzes.toml"


@dataclass(frozen=True)
class Quiz:
    chapter: str
    questions: list[dict[str, Any]]  # as in the file

    def _repr_html_(self) -> str:
        asked = "\n".join(_form(question, f"quiz-{self.chapter}-{k}") for k, question in enumerate(self.questions, 1))
        style, script = ((HERE / f"quiz.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
        return (
            f'<div class="quiz" data-lm-suppress-shortcuts="true">\n<style>{style}</style>\n{asked}\n'
            f"<script>{script}</script>\n</div>"
        )

    def __repr__(self) -> str:
        return "\n\n".join(
            "\n".join([f"{k}. {one['ask']}", *(f"   ( ) {answer['text']}" for answer in one["answers"])])
            for k, one in enumerate(self.questions, 1)
        )


def quiz(chapter: str, file: Path = QUIZZES) -> Quiz:
    """The quiz of a chapter, by its two digits."""
    questions = tomllib.loads(file.read_text(encoding="utf-8"))[chapter]
    for k, question in enumerate(questions, 1):
        answers, where = question["answers"], f"Chapter {chapter}, question {k}"
        right = sum(answer.get("right", False) for answer in answers)
        if right != 1 or len(answers) < 2:
            raise ValueError(f"{where} has {len(answers)} answers, {right} of them right; give two or more, one right")
        for text in (question["ask"], *(answer[part] for answer in answers for part in ("text", "why"))):
            if text.count("$") % 2 or text.count("`") % 2:
                raise ValueError(f"{where}: a $ or a ` opens that nothing closes: {text!r}")
        answers.sort(key=lambda answer: answer["text"])  # the place says nothing
    return Quiz(chapter, questions)


def _form(question: dict[str, Any], name: str) -> str:
    """Native buttons: one of them is chosen with the keys that the reader knows, and Enter checks it."""
    rows = "".join(
        f'<label><input type="radio" name="{name}" value="{"right" if answer.get("right") else "wrong"}" required> '
        f"<span>{_html(answer['text'])}</span></label><p hidden>{_html(answer['why'])}</p>\n"
        for answer in question["answers"]
    )
    return (
        f"<form><fieldset><legend>{_html(question['ask'])}</legend>\n{rows}"
        '<button>Check</button><p class="quiz-told" role="status" aria-live="polite"></p></fieldset></form>'
    )


def _html(text: str) -> str:
    """Maths in the form that Sphinx gives it, which JupyterLab reads, too."""

    def part(found: re.Match[str]) -> str:
        if found[1]:
            return f'<span class="math notranslate nohighlight">\\({found[1]}\\)</span>'
        return f"<code>{found[2]}</code>"

    return re.sub(r"\$([^$]+)\$|`([^`]+)`", part, html.escape(text, quote=False))
