"""Running a program: memory arena, native plan, batch slices, listings. Start at :mod:`.plan`."""
