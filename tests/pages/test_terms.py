"""Terms of the glossary are links where a chapter first uses them."""

from docutils import nodes

from terms import link_first_uses

ENTRIES = ["condition number", "single loop, double loop", "finite difference", "number"]


def test_first_use_of_a_term_is_linked_outside_links_and_code():
    document = nodes.document(None, None)
    closed = [kind("", "number") for kind in (nodes.reference, nodes.literal, nodes.math)]
    words = "Single-loop methods, Finite Differences, a numbered line, the condition number."
    document += nodes.paragraph("", "", *closed, nodes.Text(words), nodes.Text(" One number, one finite difference."))
    link_first_uses(document, ENTRIES, lambda entry, words: nodes.inline("", f"[{words}]({entry})"))
    assert document.astext() == (
        "numbernumbernumber[Single-loop](single loop, double loop) methods, [Finite Differences](finite difference), "
        "a numbered line, the [condition number](condition number). One [number](number), one finite difference."
    )
