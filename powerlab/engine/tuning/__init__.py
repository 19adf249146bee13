"""Measured choices: candidates are timed on this machine, and what was faster beyond noise is kept in a file."""
