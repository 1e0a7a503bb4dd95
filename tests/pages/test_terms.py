"""Terms of the glossary are links where a chapter first uses them."""

from docutils import nodes

from terms import link_first_uses

ENTRIES = ["condition number", "single loop, double loop", "finite difference", "number", "hyper-cleaning"]


def linked(*paragraphs):
    """The chapter with its links as "[words](entry)", paragraph by paragraph."""
    document = nodes.document(None, None)
    document += nodes.title("", "A finite difference")
    for paragraph in paragraphs:
        document += nodes.paragraph("", "", *(nodes.Text(p) if isinstance(p, str) else p for p in paragraph))
    link_first_uses(document, ENTRIES, lambda entry, words: nodes.inline("", f"[{words}]({entry})"))
    return [part.astext() for part in document.children[1:]]


def test_a_term_is_linked_at_its_first_use_only():
    assert linked(["A finite difference, and a", " finite difference."], ["Finite difference"]) == [
        "A [finite difference](finite difference), and a finite difference.",
        "Finite difference",
    ]


def test_plurals_hyphens_and_capitals_are_uses():
    assert linked(["Single-loop methods take Finite Differences for hyper cleaning."]) == [
        "[Single-loop](single loop, double loop) methods take [Finite Differences](finite difference)"
        " for [hyper cleaning](hyper-cleaning)."
    ]


def test_the_longest_term_wins_and_part_of_a_word_is_none():
    assert linked(["The condition number, a numbered line, a number."]) == [
        "The [condition number](condition number), a numbered line, a [number](number)."
    ]


def test_headings_links_code_and_maths_are_left_alone_and_do_not_count():
    closed = [kind("", "number") for kind in (nodes.reference, nodes.literal, nodes.math)]
    deep = nodes.reference("", "", nodes.emphasis("", "finite difference"))
    assert linked([*closed, deep, " is a ", nodes.strong("", "number")]) == [
        "numbernumbernumberfinite difference is a [number](number)"
    ]
