"""Power and energy files of hwmon chips as a power source."""
