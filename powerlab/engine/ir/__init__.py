"""The intermediate representation: an immutable graph with static shapes. Start at :mod:`.graph`."""
