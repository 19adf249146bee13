"""The operating point for a goal under bounds, what each bound costs, and what other arrival rates change.

Start at :mod:`.answer`. What is decided and what is assumed: docs/method.md, "The best point under bounds".
"""
