"""Power and energy files of hwmon chips as a power source.

Start at :mod:`.source`. What is known about a chip beyond its files is one entry in :mod:`.known_chips`.
"""
