"""``powerlab models``: ONNX files on a server, for sweeps on any of its devices."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
Upload, list and download ONNX files on a server. A file is identified by its SHA-256; a sweep names it as
NAME@sha256:DIGEST, and the device's agent downloads it before the sweep. The model must be one file: external data is
rejected.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request; a message says why and what to do

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
        help="upload a file, or the rest of one",
        description=(
            "Check an ONNX file and upload it. An interrupted upload continues where it stopped, within a day; a "
            "file the server has is not sent again."
        ),
    )
    upload.add_argument("file", metavar="FILE", help="an ONNX file")
    upload.add_argument("--name", help="name of the model (default: the file's name without .onnx)")
    listed = actions.add_parser(
        "list", help="list models, newest first", description="List the server's models, newest first."
    )
    listed.add_argument("--name", help="only models of this name")
    show = actions.add_parser("show", help="show one model", description="Show a model and its name for sweeps.")
    download = actions.add_parser(
        "download",
        help="download a model's file",
        description=(
            "Download a model's file and verify its SHA-256. An interrupted download continues where it stopped."
        ),
    )
    download.add_argument("--output", metavar="FILE", help="output file (default: NAME.onnx in this folder)")
    for action in (show, download):
        action.add_argument(
            "model", metavar="MODEL", help="model name, first digits of its SHA-256, or NAME@sha256:DIGEST"
        )
    for action in (upload, listed, show, download):
        add_server_argument(action, reads=action is not upload)
    for action in (upload, listed, show):
        action.add_argument("--json", action="store_true", help="print JSON")


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
