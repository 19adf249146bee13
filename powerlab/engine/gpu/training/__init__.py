"""Training on a GPU: a step is one program, recorded once, whose weights stay in the GPU's memory."""
