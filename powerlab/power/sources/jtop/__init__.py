"""jetson-stats' jtop service as a power source; its AGPL client runs in a process of its own."""
