"""The messages between agent, server and command line, versioned; plain data over the domain's words.

:mod:`~powerlab.protocol.messages` is what an agent and a server say to each other,
:mod:`~powerlab.protocol.records` what the server answers to readers, :mod:`~powerlab.protocol.chunks` how a power trace
travels and is stored, :mod:`~powerlab.protocol.wire` how all of it becomes JSON.
"""

PROTOCOL_VERSION = 3
"""Raised when an old agent would misunderstand a new server or the other way round; both refuse the other's number."""
