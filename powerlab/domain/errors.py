"""The error that a user may cause."""

from __future__ import annotations


class PowerlabError(Exception):
    """Something the user can fix: its text is one sentence that says what is wrong and how to fix it.

    The command line prints the text and exits with code 2; the API answers with an RFC 9457 problem.
    """
