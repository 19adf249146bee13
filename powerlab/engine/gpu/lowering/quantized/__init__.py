"""Operators on bytes: images in blocks of 4 channels a word, with the arithmetic of the processor's kernels."""
