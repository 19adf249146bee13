"""How late a sensor is, found from a load that steps."""
