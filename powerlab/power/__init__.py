"""Power sources, one a file, and the recorder that samples them."""
