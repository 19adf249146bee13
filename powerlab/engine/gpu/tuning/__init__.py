"""Which kernel and tiles are the fastest for a shape on the GPU that is used: found by timing, kept in a file."""
