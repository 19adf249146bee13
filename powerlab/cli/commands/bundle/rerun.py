"""Carries out ``powerlab bundle rerun``: the plan once more, through the same code as ``powerlab profile``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.text import Text

from powerlab.analysis.dimensions import varying
from powerlab.analysis.wording import ratio_words
from powerlab.backends.packages import PACKAGES, check_installed
from powerlab.backends.registry import BACKENDS
from powerlab.bundles.agreement import Agreement, Repeated, changes, repeated, title
from powerlab.bundles.environment import sha256_of
from powerlab.bundles.manifest import BundledModel
from powerlab.bundles.reading import Bundle, open_bundle
from powerlab.cli import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK
from powerlab.cli.arguments.host import open_host
from powerlab.cli.commands.profile.measure import Made, measure_and_keep
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.match_tables import match_document
from powerlab.cli.output.sweep_table import format_figure
from powerlab.cli.process.interrupts import orderly_ends
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import check_plan
from powerlab.domain.workload import Processor
from powerlab.sweep.meter import choose_meter
from powerlab.sweep.until import check_until

_STYLES = {Agreement.AGREES: "green", Agreement.DIFFERS: "red", Agreement.UNDECIDED: "yellow"}


def rerun(args: argparse.Namespace) -> int:
    """Measure a bundle's plan again and say which figures agree; returns the exit status.

    Raises:
        PowerlabError: the file is no bundle, a model is missing, or the plan is impossible here.
    """
    with open_bundle(Path(args.bundle)) as bundle, tempfile.TemporaryDirectory(prefix="powerlab-models-") as folder:
        device_then = bundle.manifest.device
        if args.board is None and args.sysroot is None and device_then.simulated:
            args.board = device_then.board
            print(f"powerlab: the bundle is of a simulated board, so it is repeated on {args.board}.", file=sys.stderr)
        files = _model_files(bundle, args.model, Path(folder))
        plan = bundle.plan
        with orderly_ends(), open_host(args) as host:
            host.model_files = files
            device, capabilities = host.device(), host.capabilities(plan.modes)
            check_plan(plan, device, capabilities, tuple(BACKENDS))
            if plan.until_percent:
                check_until(plan, choose_meter(host.sysroot, capabilities, plan.sample_period_s, plan.processors))
            for engine in plan.engines:
                if engine in PACKAGES:
                    check_installed(engine, on_card=Processor.GPU in plan.processors)
            made = measure_and_keep(plan, host, device, capabilities, args.database)
        print(f"powerlab: {made.words}", file=sys.stderr)
        if made.interrupted:
            return EXIT_INTERRUPTED
        return _report(args, bundle, device, made)


def _report(args: argparse.Namespace, bundle: Bundle, device: Device, made: Made) -> int:
    then = bundle.manifest.device
    one_device = (then.name, then.simulated) == (device.name, device.simulated)
    found = repeated(bundle.runs, made.runs, one_device=one_device)
    if not found:
        raise PowerlabError("no point has a figure both in the bundle and here; `powerlab runs list` shows the runs.")
    why = tuple(changes(then, device, bundle.runs, made.runs))
    if args.json:
        document = {
            "sweep_id": made.sweep_id,
            "bundled_sweep_id": bundle.manifest.sweep_id,
            "figures": [{**match_document(one.match), "agreement": one.agreement} for one in found],
            "changes": why,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _show(found, why)
    differs = any(one.agreement is Agreement.DIFFERS for one in found)
    return EXIT_INCOMPLETE if differs or made.exit_status != EXIT_OK else EXIT_OK


def _show(found: Sequence[Repeated], why: Sequence[str]) -> None:
    console = table_console()
    name_of = varying(one.match.one.point for one in found)
    for heading in dict.fromkeys(title(one.match) for one in found):
        table = plain_table("point", "bundle", "now", "now / bundle (95 % CI)", "result")
        for one in found:
            match = one.match
            if title(match) == heading:
                table.add_row(
                    name_of(match.one.point),
                    format_figure(match.other.metric),
                    format_figure(match.one.metric),
                    match.reason if match.ratio is None else ratio_words(match.ratio),
                    Text(one.agreement.value, style=_STYLES.get(one.agreement, "")),
                )
        print_neatly(console, Text(heading), table, Text())
    print_neatly(console, Text(summary(found), style="bold"), *map(Text, _reasons(found, why)))


def summary(found: Sequence[Repeated]) -> str:
    """Return how many figures agree, in a sentence."""
    counts = Counter(one.agreement for one in found)
    rest = [f"{counts[kind]} {words}" for kind, words in _REST.items() if counts[kind]]
    start = f"{counts[Agreement.AGREES]} of {len(found)} figures agree within the 95 % intervals of their ratios"
    return f"{'; '.join([start, *rest])}."


_REST = {
    Agreement.DIFFERS: "differ",
    Agreement.UNDECIDED: "are undecided (outside the interval, but not after correction for so many figures, or "
    "without an interval)",
    Agreement.SIDE_BY_SIDE: "stand side by side only, being of different provenance",
}


def _reasons(found: Sequence[Repeated], why: Sequence[str]) -> Sequence[str]:
    if not any(one.agreement is not Agreement.AGREES for one in found):
        return ()
    if why:
        return ("What is not the same, and may be why:", *(f"  {one}" for one in why))
    return (
        "Board, processor, kernel, versions and governors are the same; what is left is temperature, other programs, "
        "and differences between the repeats of two days.",
    )


def _model_files(bundle: Bundle, given: Sequence[str], folder: Path) -> dict[str, str]:
    """Return where the plan's model files lie here, by the plan's words for them."""
    named = dict(_named(word) for word in given)
    found = bundle.unpack_models(folder)
    for model in bundle.manifest.models:
        if model.kind != "zoo" and model.name not in found:
            found[model.name] = _found_here(model, named.get(model.name, model.name))
    return found


def _found_here(model: BundledModel, file: str) -> str:
    path = Path(file)
    if not path.is_file():
        raise PowerlabError(
            f"the model {model.name} is not in the bundle; give its file with --model '{model.name}=FILE', or make the "
            "bundle with --with-model."
        )
    if model.sha256 and sha256_of(path) != model.sha256:
        raise PowerlabError(f"{path} is not the model {model.name}: the bundle's SHA-256 is {model.sha256[:16]}….")
    return str(path)


def _named(word: str) -> tuple[str, str]:
    name, separator, file = word.partition("=")
    if not separator:
        raise PowerlabError(f"invalid --model {word!r}: give NAME=FILE.")
    return name, file
