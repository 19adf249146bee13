"""The knob ``cpu_quota``: processor time of the worker, limited through a control group.

Start at :mod:`.knob`; :mod:`.cgroup` finds the version of control groups that the device has.
"""
