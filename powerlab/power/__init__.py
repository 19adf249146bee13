"""Power sources, one a file, and the recorder that samples them.

    sysroot = Sysroot()
    probes = probe_all(sysroot)                           # what each source found, absent ones too
    total = choose_total(probes, detect(sysroot))         # which rails, added up, are the device's power
    with Recorder(sysroot, total.rails, period_s=0.01) as recorder:
        ...                                               # the work to measure
        traces = recorder.stop()                          # W, or J of counters that never decrease

A new source is a module with a class that fulfils :class:`~powerlab.power.base.PowerSource` and one line in
:mod:`powerlab.power.registry`. Absence is a state to show: nothing here ever turns a missing sensor into 0 W.
"""
