"""The kernel test under the sanitizer of addresses: no access out of bounds, nothing leaked."""

import pytest

from engine_native.sanitizing import assert_clean
from powerlab.engine.target.tiers import available_tiers


@pytest.mark.campaign(minutes=8)
def test_kernels_stay_within_their_memory_and_give_it_back(tmp_path):
    """What differs between tiers is what they read and write: the widest one masks, the test's own odd one does not."""
    assert_clean(tmp_path, "address", available_tiers()[0].name)
