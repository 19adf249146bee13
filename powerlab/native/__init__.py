"""The C++ core and the backend that builds it."""
