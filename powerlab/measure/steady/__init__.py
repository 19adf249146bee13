"""When a device is ready to be measured: steady, and as warm as before."""
