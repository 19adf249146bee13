"""Knobs of graphics cards that are set through their drivers' files."""
