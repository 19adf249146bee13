"""Published experiments that powerlab repeats: what they asked, their published tables, and the sweeps that answer."""
