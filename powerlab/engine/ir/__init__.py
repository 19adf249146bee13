"""The intermediate representation: a frozen graph with static shapes. Start at :mod:`.graph`."""
