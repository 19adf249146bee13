"""A laptop's batteries as a power source."""
