"""A laptop's batteries as a power source: :mod:`.source`, over the kernel's files in :mod:`.cells`."""
