"""Elements of HTML and SVG, built as trees so that they are well formed and every text is escaped."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, tostring

from emuml.errors import printable

Child = Element | str

# Controls but for tab and new line, what turns the direction of text, half of a pair, and what is no character at all.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def tag(name: str, *children: Child, **attributes: object) -> Element:
    """Return an element; a trailing underscore of an attribute is dropped, inner ones become hyphens.

    Examples
    --------
    >>> to_text(tag("p", "a < b", tag("b", "!"), class_="note"))
    '<p class="note">a &lt; b<b>!</b></p>'
    """
    element = Element(name, {key.rstrip("_").replace("_", "-"): _text(value) for key, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, str):
            text = visible(child)
            if last is None:
                element.text = (element.text or "") + text
            else:
                last.tail = (last.tail or "") + text
        else:
            element.append(child)
            last = child
    return element


def to_text(element: Element) -> str:
    """Return an element as HTML text."""
    return tostring(element, encoding="unicode", method="html")


def visible(text: str) -> str:
    r"""Return a text with escapes in place of characters that nobody sees, most of which a page may not have.

    Examples
    --------
    >>> print(visible("\x1b[31m"))
    \x1b[31m
    """
    return _UNSEEN.sub(lambda found: printable(found.group()), text)


def _text(value: object) -> str:
    # A tenth of a pixel is enough, and equal drawings have equal bytes.
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else visible(str(value))


def table(head: list[str], rows: list[list[str]], caption: str) -> Element:
    """Return a table whose first column names its rows, in a box that scrolls on narrow screens."""
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    inner = tag("table", tag("caption", caption), top, tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
