"""The questions at the ends of chapters: what a file may hold, and what it becomes."""

import re

import pytest

from bilevel_book.quiz import quiz

GOOD = """
[[01]]
ask = "Which is `f`, if $a<b$?"
answers = [
  { text = "This: $y^*$.", right = true, why = "Since $\\\\mu>0$." },
  { text = "<That>.", why = "It is `g`." },
]
"""


def quiz_of(text, tmp_path):
    file = tmp_path / "quizzes.toml"
    file.write_text(text)
    return quiz("01", file)


def test_quiz_has_radio_buttons_in_the_order_of_their_words(tmp_path):
    shown = quiz_of(GOOD, tmp_path)._repr_html_()
    assert re.findall(r'type="radio" name="quiz-01-1" value="(\w+)"', shown) == ["wrong", "right"]
    assert (shown.count("<fieldset>"), shown.count("<legend>"), shown.count('role="status"')) == (1, 1, 1)


def test_maths_and_code_are_marked_and_the_rest_escaped(tmp_path):
    shown = quiz_of(GOOD, tmp_path)._repr_html_()
    maths = re.findall(r'<span class="math notranslate nohighlight">\\\((.+?)\\\)</span>', shown)
    assert maths == ["a&lt;b", "y^*", r"\mu&gt;0"]
    assert re.findall("<code>(.+?)</code>", shown) == ["f", "g"]
    assert "&lt;That&gt;." in shown


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("right = true, ", "", "Chapter 01, question 1 has 2 answers, 0 of them right; give two or more, one right"),
        ("$y^*$", "$y^*", "Chapter 01, question 1: a \\$ or a ` opens that nothing closes"),
    ],
)
def test_invalid_file_raises(tmp_path, before, after, message):
    assert before in GOOD
    with pytest.raises(ValueError, match=message):
        quiz_of(GOOD.replace(before, after, 1), tmp_path)
