"""Runs made into answers: summaries of points, efficiency, tables. Pure: it reads domain objects only."""
