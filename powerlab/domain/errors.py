"""The error that a user may cause."""

from __future__ import annotations


class PowerlabError(Exception):
    """Something the user can fix: its text is one sentence that says what is wrong and how to fix it.

    The command line prints the text and exits with code 2; the API answers with an RFC 9457 problem.
    """

    def named(self, before: str) -> PowerlabError:
        """Return the error with a sentence that begins with ``before``."""
        return type(self)(f"{before}{self}")


class TooLargeError(PowerlabError):
    """Something needs more memory than there is, or than an engine counts; a smaller batch may not."""
