"""Run a plan on a device: open it, check the plan against its sensors, and run every point.

Start at :mod:`.runner`, which yields one event for everything that happens; the command line prints the events, and
an agent uploads them. :mod:`.opened` opens this machine or a simulated board for both.
"""
