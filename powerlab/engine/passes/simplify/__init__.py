"""Passes that remove or reorder nodes without changing the result: dead nodes, views, nested concatenations."""
