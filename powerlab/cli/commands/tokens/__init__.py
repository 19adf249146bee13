"""``powerlab tokens``: who may do what on a server."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.server import add_server_argument

DESCRIPTION = """\
Make, list and revoke the tokens of a server: a viewer reads, an operator also asks for sweeps and enrols devices, an
admin does everything. An admin's own token goes into POWERLAB_TOKEN. With --database no server is asked, and whoever
may write the database may make any token: so the first admin comes to be.
"""

EPILOG = """\
exit status: 0 done; 2 the request cannot be carried out, one sentence says why

environment:
  POWERLAB_TOKEN    your token, for every command that asks a server
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
        help="make a token and print it, this once",
        description="Make a person's or a program's token and print it: it is not shown again.",
    )
    create.add_argument("name", metavar="NAME", help="whose it is; stands in the log of what was done")
    create.add_argument(
        "--role", choices=("viewer", "operator", "admin"), default="viewer", help="what it allows (default: viewer)"
    )
    create.add_argument(
        "--valid", metavar="TIME", help="how long it holds: 12h, 90d or 2y (default: until it is revoked)"
    )
    listed = actions.add_parser(
        "list", help="every token, newest first", description="List every token without its secret, newest first."
    )
    revoke = actions.add_parser(
        "revoke",
        help="end a token",
        description="End a token, and every login that was made with it.",
    )
    revoke.add_argument("token", metavar="NAME_OR_ID", help="its name, or its id as `powerlab tokens list` shows it")
    code = actions.add_parser(
        "code",
        help="make an enrolment code, from which an agent gets its token",
        description="Make a code with which `powerlab agent enrol` makes one device known, within an hour.",
    )
    code.add_argument("--device", metavar="ID", help="a device that is known already, whose agent is enrolled again")
    for action in (create, listed, revoke, code):
        add_server_argument(action)
        action.add_argument("--database", metavar="PATH_OR_URL", help="work on a database instead of asking a server")
        action.add_argument("--json", action="store_true", help="print JSON for machines")


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
