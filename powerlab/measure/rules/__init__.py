"""The validity rules, one per file: each yields verdicts on a run with a sentence that says why.

Start at :mod:`.base`. A rule is one module and a line in :mod:`.registry`. Most files are short, because a rule is the
unit in which rules are added, read and tested.
"""
