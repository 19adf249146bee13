"""Bring the catalogues in dashboards/powerlab_dashboards/locale up to date with the words in the code.

New messages are added without a translation, and those that are gone are removed. Each message names the files that
use it, without line numbers, so that two people's changes rarely meet.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.frontend import parse_mapping_cfg
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parent.parent / "dashboards" / "powerlab_dashboards"
LOCALE = PACKAGE / "locale"
_IDLE = (b'"POT-Creation', b'"PO-Revision', b'"Report-', b'"Last-Translator', b'"Language-Team', b'"Generated-By')
"""Headers that nobody needs; the dates among them would change with every run."""
KEYWORDS = DEFAULT_KEYWORDS | {"mark": None, "mark_plural": (1, 2)}


def extracted() -> Catalog:
    """Return every message in the dashboards' templates, Python and scripts."""
    with (LOCALE / "extraction.cfg").open() as file:
        methods, options = parse_mapping_cfg(file)  # type: ignore[no-untyped-call]
    found = Catalog(charset="utf-8")
    for name, _, message, comments, context in extract_from_dir(
        PACKAGE, methods, options, keywords=KEYWORDS, comment_tags=("For translators:",), strip_comment_tags=True
    ):
        found.add(message, locations=[(name, 0)], auto_comments=comments, context=context)
    return found


def updated(path: Path) -> bytes:
    """Return a catalogue's file with the messages that there are now, in alphabetical order."""
    with path.open("rb") as file:
        kept = read_po(file)
    kept.update(extracted(), no_fuzzy_matching=True)
    kept.obsolete.clear()
    kept.fuzzy = False
    written = io.BytesIO()
    write_po(written, kept, width=120, sort_output=True, include_lineno=False)
    return b"".join(line for line in written.getvalue().splitlines(keepends=True) if not line.startswith(_IDLE))


def main() -> int:
    """Write every catalogue and say how many messages lack a translation; return the exit status."""
    for path in sorted(LOCALE.glob("*.po")):
        path.write_bytes(updated(path))
        with path.open("rb") as file:
            messages = [one for one in read_po(file) if one.id]
        missing = sum(not all(one.string if isinstance(one.string, tuple) else (one.string,)) for one in messages)
        print(f"{path.name}: {len(messages)} messages, {missing} without a translation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
