"""The knob ``cpufreq``: clock limits, governor and energy preference of CPU clusters. Start at :mod:`.knob`."""
