"""A page as a tree of elements, strict about what browsers forgive: every tag is closed in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "img", "br", "input", "hr"})


@dataclass
class Element:
    """One element; ``text`` is its own and its children's text in reading order."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    parts: list[str | Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text a reader sees, in one line."""
        raw = "".join(part if isinstance(part, str) else f" {part.text} " for part in self.parts)
        return " ".join(raw.split())

    def all(self, *tags: str) -> Iterator[Element]:
        """Yield the elements below with one of these tags (any tag if none is given), in document order."""
        for child in self.children:
            if not tags or child.tag in tags:
                yield child
            yield from child.all(*tags)

    def one(self, tag: str) -> Element:
        """Return the only element below with this tag."""
        (found,) = self.all(tag)
        return found


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self._at = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.children.append(element)
        self._at.parts.append(element)
        if tag not in VOID:
            self._at = element

    def handle_endtag(self, tag: str) -> None:
        assert self._at.tag == tag, f"</{tag}> closes <{self._at.tag}>"
        assert self._at.parent is not None
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        self._at.parts.append(data)

    def close(self) -> None:
        super().close()
        assert self._at is self.root, f"<{self._at.tag}> is never closed"


def parse(html: str) -> Element:
    """Return the document; fails where it is not well-formed."""
    assert html.startswith("<!doctype html>")
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.root
