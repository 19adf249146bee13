"""``powerlab top --from URL``: the devices of a server, a line each, and one of them with its rails."""
