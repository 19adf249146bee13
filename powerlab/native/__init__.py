"""The C++ core as the extension module ``_native``: the engine's kernels and plan, and the power sampler.

Start at ``engine/plan.hpp`` and ``sampler/sampler.hpp``. :mod:`.build_backend` builds it, with a C++ compiler from
the package index (:mod:`.fallback_compiler`) if the machine has none.
"""
