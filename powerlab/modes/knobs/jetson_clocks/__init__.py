"""The knob ``jetson_clocks``, through NVIDIA's own program."""
