"""Keeping a run below the highest temperature that its device may have."""
