"""Graph passes, one a file: each takes a graph and returns a better one."""
