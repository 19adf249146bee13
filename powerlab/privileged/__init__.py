"""How a process without privileges asks the privileged helper for what needs root: the wire and the client."""
