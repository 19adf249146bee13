"""The INA238 family of power monitors as a power source. Start at :mod:`.source`; :mod:`.chips` has the data sheets."""
