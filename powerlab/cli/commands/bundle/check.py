"""Carries out ``powerlab bundle verify``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from powerlab import __version__
from powerlab.analysis.dimensions import in_words
from powerlab.bundles.manifest import Manifest
from powerlab.bundles.reading import Bundle, open_bundle
from powerlab.bundles.verify import Checked, verify
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.page import counted

_WIDTH = 110


def check(args: argparse.Namespace) -> int:
    """Verify a bundle; the exit status says whether every figure is reproduced.

    Raises:
        PowerlabError: the file is no bundle, or was changed.
    """
    with open_bundle(Path(args.bundle)) as bundle:
        found = tuple(verify(bundle))
        if args.json:
            print(msgspec.json.format(msgspec.json.encode(_document(bundle.manifest, found)), indent=2).decode())
        else:
            console = table_console()
            console.width = min(console.width, _WIDTH)
            print_neatly(console, *_report(bundle, found))
    return EXIT_OK if all(one.reproduced for one in found) else EXIT_INCOMPLETE


def _report(bundle: Bundle, found: Sequence[Checked]) -> Iterator[RenderableType]:
    manifest = bundle.manifest
    simulated = ", a simulated board" if manifest.device.simulated else ""
    yield Text(f"Sweep {manifest.sweep_id} of {manifest.device.name}{simulated}; all hashes are right.")
    yield Text()
    words = {run.id: f"{in_words(run.point)}, repeat {run.repeat + 1}" for run in bundle.runs}
    words |= {run.point.id: in_words(run.point) for run in bundle.runs}
    table = plain_table("of", "id", "point", "result")
    for one in found:
        style = "" if one.reproduced else "bold red"
        table.add_row(one.kind, one.id[:8], words.get(one.id, "unknown"), Text(one.words, style=style))
    yield table
    for one in found:
        for different in one.different:
            yield Padding(
                Text(f"{one.kind} {one.id[:8]}: {different.what}: {different.detail}", style="red"), (0, 0, 0, 2)
            )
    yield Text()
    yield _sentence(found)
    versions = {run.conditions.measured_with for run in bundle.runs if run.conditions is not None} - {__version__}
    if versions and not all(one.reproduced for one in found):
        yield Text(f"Measured with powerlab {', '.join(sorted(versions))}; this is {__version__}: methods may differ.")


def _sentence(found: Sequence[Checked]) -> Text:
    whole = sum(len(one.compared) for one in found)
    right = whole - sum(len(one.different) for one in found)
    bad = [one for one in found if not one.reproduced]
    if not bad:
        return Text(f"{right} of {whole} figures reproduced from the raw records.", style="bold green")
    kinds = [counted(count, kind) for kind in ("run", "point") if (count := sum(one.kind == kind for one in bad))]
    return Text(
        f"{right} of {whole} figures reproduced; {' and '.join(kinds)} not reproduced as stored.", style="bold red"
    )


def _document(manifest: Manifest, found: Sequence[Checked]) -> dict[str, object]:
    return {
        "sweep_id": manifest.sweep_id,
        "reproduced": all(one.reproduced for one in found),
        "checked": [
            {
                "kind": one.kind,
                "id": one.id,
                "reproduced": one.reproduced,
                "result": one.words,
                "figures": len(one.compared),
                "different": one.different,
            }
            for one in found
        ],
    }
