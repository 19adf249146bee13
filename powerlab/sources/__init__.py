"""Stored results, wherever they are: a server, a database or results files answer the same questions.

Start at :mod:`.source`, which lists the questions; :mod:`.opening` finds what an address means, and
:mod:`.identifiers` what short or foreign identifiers stand for. Commands and frames both read through here.
"""
