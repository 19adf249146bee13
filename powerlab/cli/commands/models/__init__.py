"""``powerlab models``: ONNX files on a server, for sweeps on any of its devices."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
Upload ONNX files to a server, list them, and fetch them. A file is known by the SHA-256 of its bytes; a sweep names it
as NAME@sha256:DIGEST, and the device's agent fetches it before the sweep. Everything must be in one file: weights in
files beside it (external data) are refused.
"""

EPILOG = """\
exit status: 0 done; 2 the request cannot be carried out, one sentence says why

examples:
  powerlab models upload detector.onnx
  powerlab models list
  powerlab models show detector
  powerlab models download detector --output copy.onnx
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    upload = actions.add_parser(
        "upload",
        help="send a file, or the rest of one",
        description="Check an ONNX file, and send it. What a server already has is not sent again: an upload that was "
        "cut off goes on where it ended, within a day.",
    )
    upload.add_argument("file", metavar="FILE", help="an ONNX file")
    upload.add_argument("--name", help="what people call it (default: the file's name without .onnx)")
    listed = actions.add_parser("list", help="newest first", description="List the server's models, newest first.")
    listed.add_argument("--name", help="only models of this name")
    show = actions.add_parser("show", help="one model", description="Show a model, and how a sweep names it.")
    download = actions.add_parser(
        "download",
        help="fetch a model's file",
        description="Fetch a model's file and compare its SHA-256; a download that was cut off goes on where it ended.",
    )
    download.add_argument("--output", metavar="FILE", help="where to (default: NAME.onnx in this folder)")
    for action in (show, download):
        action.add_argument("model", metavar="MODEL", help="its name, its SHA-256's beginning, or both as in a plan")
    for action in (upload, listed, show, download):
        add_server_argument(action)
    for action in (upload, listed, show):
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.models import actions as model_actions

    actions = {
        "upload": model_actions.upload,
        "list": model_actions.list_all,
        "show": model_actions.show,
        "download": model_actions.download,
    }
    return actions[args.action](args)
