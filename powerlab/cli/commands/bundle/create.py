"""Carries out ``powerlab bundle create``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from powerlab.bundles.writing import Packed, write_bundle
from powerlab.cli import EXIT_OK
from powerlab.cli.output.page import counted
from powerlab.cli.stored.sweeps import opened_sweep
from powerlab.domain.errors import PowerlabError

SUFFIX = ".powerlab.zip"


def create(args: argparse.Namespace) -> int:
    """Pack a sweep.

    Raises:
        PowerlabError: there is no such sweep, its samples are not to be had, or the bundle cannot be written.
    """
    if Path(args.sweep).is_file():
        raise PowerlabError(
            f"{args.sweep} is a results file, which has no samples; give the id of its sweep, so that they are read "
            "from the database or, with --from, from a server."
        )
    with opened_sweep(args.sweep, args) as (sweep, source):
        path = Path(args.output or f"{sweep.id[:8]}{SUFFIX}")
        packed = Packed(
            sweep_id=sweep.id,
            device=source.device(sweep.id),
            plan=sweep.plan,
            runs=sweep.runs,
            recorded=source.recorded,
        )
        manifest = write_bundle(packed, path, with_model=args.with_model)
    print(path)
    kilobytes = path.stat().st_size / 1e3
    size = f"{kilobytes:.0f} kB" if kilobytes < 1e3 else f"{kilobytes / 1e3:.1f} MB"
    print(f"powerlab: {counted(len(sweep.runs), 'run')} with their samples, {size}.", file=sys.stderr)
    for model in manifest.models:
        if model.kind == "file" and not model.member:
            remark = model.remark or "too large to be included unasked; --with-model includes it"
            print(f"powerlab: model {model.name}: {remark}.", file=sys.stderr)
        elif model.kind == "file" and model.remark:
            print(f"powerlab: model {model.name}: {model.remark}.", file=sys.stderr)
    return EXIT_OK
