"""The validity rules, one a file: a generator of verdicts with their sentences, and a line in ``registry``."""
