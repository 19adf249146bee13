"""How knobs reach the device: files, programs, the privileged helper, and what that helper is permitted to do."""
