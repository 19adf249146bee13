"""From runs to answers: summaries of points, comparisons, best points. Pure functions of domain objects.

Start at :mod:`.summary`, then :mod:`.best` and :mod:`.comparison`.
"""
