"""Sensor lag, measured with a step load (``powerlab calibrate``).

Start at :mod:`.step_load`, which records the rails while a load is switched on and off; :mod:`.edges` computes the lag
of a rail from that, and :mod:`.calibration` stores it for later sweeps.
"""
