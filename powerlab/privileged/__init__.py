"""Client of the privileged helper, for processes that may not open a sensor or set a mode themselves.

Start at :mod:`.client`; messages are in :mod:`.protocol`, the helper itself is the package ``powerlab_helper``.
"""
