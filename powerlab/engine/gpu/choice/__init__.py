"""How a convolution, or a matrix product that is one, is computed: the kernel and its tiles."""
