"""Elements of HTML and SVG, built as trees so that they are well formed and every text is escaped."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

Child = Element | str


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
            if last is None:
                element.text = (element.text or "") + child
            else:
                last.tail = (last.tail or "") + child
        else:
            element.append(child)
            last = child
    return element


def to_text(element: Element) -> str:
    """Return an element as HTML text."""
    return tostring(element, encoding="unicode", method="html")


def _text(value: object) -> str:
    # A tenth of a pixel is enough, and equal drawings have equal bytes.
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def table(head: list[str], rows: list[list[str]], caption: str) -> Element:
    """Return a table whose first column names its rows, in a box that scrolls on narrow screens."""
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows]
    top = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    inner = tag("table", tag("caption", caption), top, tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
