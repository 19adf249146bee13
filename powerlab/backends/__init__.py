"""Engines under test, one a file, behind one small interface."""
