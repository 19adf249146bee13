"""Restoring previous settings: :mod:`.journal`, :mod:`.lock`, signal masking, and :mod:`.restore` after a crash."""
