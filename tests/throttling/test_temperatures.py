"""Every temperature that a device gives, zones and cards, and no others."""

from __future__ import annotations

from nvidia_cards import CARD, SILENT, put, without, write_cards
from powerlab.sysroot import Sysroot
from powerlab.throttling.temperatures import Temperatures, watched_zones
from powerlab.throttling.zones import Zones
from zone_tree import ZoneTree


def test_zones_and_cards_are_read_together(tmp_path):
    sysroot = write_cards(tmp_path, [CARD, SILENT, without("temperature_c"), CARD])
    ZoneTree(tmp_path, ("x86_pkg_temp", "61000"), ("iwlwifi_1", "50000"))
    assert watched_zones(sysroot) == ("x86_pkg_temp", "GPU0", "GPU3")
    put(sysroot, "temperature_c", 77, index=3)
    with Temperatures(sysroot) as temperatures:
        assert temperatures.read() == {"x86_pkg_temp": 61.0, "GPU0": 41.0, "GPU3": 77.0}


def test_a_device_that_gives_none_has_none(tmp_path):
    assert watched_zones(Sysroot(tmp_path)) == ()
    tree = ZoneTree(tmp_path, ("PMIC-Die", "100000"), ("dead", "-256000"), ("odd", "warm"))
    assert watched_zones(tree.sysroot) == ()


def test_a_library_that_does_not_start_leaves_the_zones(tmp_path):
    sysroot = write_cards(tmp_path, [CARD], init_error=9)
    ZoneTree(tmp_path, ("CPU-therm", "40000"))
    assert watched_zones(sysroot) == ("CPU-therm",)


def test_a_zone_that_wakes_up_is_read_from_then_on_and_one_that_falls_asleep_is_left_out(tmp_path):
    tree = ZoneTree(tmp_path, ("CPU-therm", "40000"), ("GPU-therm", "-256000"))
    with Temperatures(tree.sysroot) as temperatures:
        assert temperatures.read() == {"CPU-therm": 40.0}
        tree.heat(1, 55.0)
        assert temperatures.read() == {"CPU-therm": 40.0, "GPU-therm": 55.0}
        tree.remove(0)
        assert temperatures.read() == {"GPU-therm": 55.0}
    assert Zones(tree.sysroot).names == ("GPU-therm",)
