"""``powerlab tokens``: who may do what on a server."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
Create, list and revoke access tokens of a server. A viewer may read, an operator may also create sweeps and enrol
devices, an admin may do everything. Your own token goes into POWERLAB_TOKEN. With --database the command works on the
database itself, without a token: this is how the first admin's token is created.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request; a message says why and what to do

environment:
  POWERLAB_TOKEN    your token, for every command that uses a server
  POWERLAB_SERVER   the server's address

examples:
  powerlab tokens create alice --role admin --database /var/lib/powerlab/powerlab.db
  powerlab tokens create grafana --role viewer --valid 365d
  powerlab tokens list
  powerlab tokens revoke grafana
  powerlab tokens code
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser(
        "create",
        help="create a token and print it once",
        description="Create a token for a person or a program and print it. It is not shown again.",
    )
    create.add_argument("name", metavar="NAME", help="name of its owner, shown in the audit log")
    create.add_argument(
        "--role", choices=("viewer", "operator", "admin"), default="viewer", help="role (default: viewer)"
    )
    create.add_argument(
        "--valid", metavar="TIME", help="validity, such as 12h, 90d or 2y (default: until it is revoked)"
    )
    listed = actions.add_parser(
        "list", help="list tokens, newest first", description="List tokens without their secrets, newest first."
    )
    revoke = actions.add_parser(
        "revoke",
        help="revoke a token",
        description="Revoke a token and every login made with it.",
    )
    revoke.add_argument("token", metavar="NAME_OR_ID", help="name or id of the token (see `powerlab tokens list`)")
    code = actions.add_parser(
        "code",
        help="create an enrolment code for an agent",
        description="Create a code for `powerlab agent enrol`, valid for one device and one hour.",
    )
    code.add_argument("--device", metavar="ID", help="a known device, to enrol its agent again")
    for action in (create, listed, revoke, code):
        add_server_argument(action)
        action.add_argument("--database", metavar="PATH_OR_URL", help="work on a database instead of a server")
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.tokens import actions as token_handling

    actions = {
        "create": token_handling.create,
        "list": token_handling.list_all,
        "revoke": token_handling.revoke,
        "code": token_handling.make_code,
    }
    return actions[args.action](args)
