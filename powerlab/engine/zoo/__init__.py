"""Models powerlab builds itself, with seeded weights, one a file."""
