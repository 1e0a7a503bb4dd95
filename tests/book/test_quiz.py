"""The questions at the ends of chapters: what a file may hold, and what it becomes."""

import re

import pytest

from bilevel_book.quiz import QUIZZES, quiz

GOOD = """
[[question]]
ask = "Which is `f`, if $a<b$?"
answers = [
  { text = "This: $y^*$.", right = true, why = "Since $\\\\mu>0$." },
  { text = "<That>.", why = "It is `g`." },
]
"""


def quiz_of(text, tmp_path):
    (tmp_path / "01.toml").write_text(text)
    return quiz("01", folder=tmp_path)


def test_a_quiz_is_made_of_native_radio_buttons_with_one_right_answer(tmp_path):
    shown = quiz_of(GOOD, tmp_path)._repr_html_()
    assert re.findall(r'type="radio" name="([\w-]+)" value="(\w+)"', shown) == [
        ("quiz-01-1", "wrong"),
        ("quiz-01-1", "right"),
    ]
    assert (shown.count("<fieldset>"), shown.count("<legend>"), shown.count('role="status"')) == (1, 1, 1)


def test_maths_and_code_are_marked_and_everything_else_is_text(tmp_path):
    shown = quiz_of(GOOD, tmp_path)._repr_html_()
    maths = re.findall(r'<span class="math notranslate nohighlight">\\\((.+?)\\\)</span>', shown)
    assert maths == ["a&lt;b", "y^*", r"\mu&gt;0"]
    assert re.findall("<code>(.+?)</code>", shown) == ["f", "g"]
    assert "&lt;That&gt;." in shown


def test_where_no_html_is_shown_the_questions_are_read_as_text(tmp_path):
    assert repr(quiz_of(GOOD, tmp_path)).splitlines() == [
        "1. Which is `f`, if $a<b$?",
        "   ( ) <That>.",
        "   ( ) This: $y^*$.",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("right = true, ", "", "01.toml, question 1 has 2 answers, 0 of them right; give two or more, one right"),
        ('"<That>.",', '"<That>.", right = true,', "2 answers, 2 of them right"),
        (', why = "It is `g`."', "", r"question 1, answer 2 has text; give text \(str\), why \(str\)"),
        ("<That>.", "", "answer 2: text is ''; give a str that is not empty"),
        ("right = true", "right = 1", "answer 1: right is 1; give a bool"),
        ("right = true", "rihgt = true", "answer 1 has text, rihgt, why; give text"),
        ("$y^*$", "$y^*", "answer 1: in text a \\$ or a ` opens that nothing closes"),
        ("ask =", "asks =", r"question 1 has asks, answers; give ask \(str\), answers \(list\)"),
        ("[[question]]", "[[questions]]", r"01.toml has questions; give question \(list\)"),
        ("ask = ", "ask  ", "01.toml is not TOML: .*line 3"),
    ],
)
def test_a_bad_file_says_what_is_wrong_and_where(tmp_path, before, after, told):
    assert before in GOOD
    with pytest.raises(ValueError, match=told):
        quiz_of(GOOD.replace(before, after, 1), tmp_path)


def test_an_unknown_chapter_is_told_which_there_are(tmp_path):
    (tmp_path / "07.toml").write_text(GOOD)
    with pytest.raises(ValueError, match="no quiz '08'; there are: 07"):
        quiz("08", folder=tmp_path)


def test_answers_are_in_order_of_their_words_so_that_their_place_says_nothing(tmp_path):
    (question,) = quiz_of(GOOD.replace("This:", "Zeta:"), tmp_path).questions
    assert [answer.text for answer in question.answers] == ["<That>.", "Zeta: $y^*$."]
    assert [answer.right for answer in question.answers] == [False, True]


@pytest.mark.parametrize("chapter", sorted(path.stem for path in QUIZZES.glob("*.toml")))
def test_a_chapter_asks_three_to_five_questions(chapter):
    assert 3 <= len(quiz(chapter).questions) <= 5
