"""Code generation for general tensors: any shape and strides, floats or integers. Start at :mod:`.nodes`."""
