"""The kernel's counters of heat on x86."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability
from powerlab.throttling.x86_throttle import X86Throttle, describe

CPU = "/sys/devices/system/cpu"


def processor(number, core=0, package=0, core_ms=None, package_ms=None):
    folder = f"{CPU}/cpu{number}/thermal_throttle"
    files = {f"{folder}/core_throttle_count": core, f"{folder}/package_throttle_count": package}
    if core_ms is not None:
        files[f"{folder}/core_throttle_total_time_ms"] = core_ms
    if package_ms is not None:
        files[f"{folder}/package_throttle_total_time_ms"] = package_ms
    return files


def watched(tree, before, after):
    watching = X86Throttle().start(tree(before))
    watching.sample()
    tree(after)
    return watching.finish()


def test_counts_from_before_do_not_count(tree):
    files = processor(0, 1234, 5678, 99, 99) | processor(1, 3, 5678, 1, 99)
    assert watched(tree, files, files) == ()


def test_the_core_with_the_most_is_named_and_the_others_are_counted(tree):
    (sentence,) = watched(
        tree,
        processor(0, 10) | processor(1, 5) | processor(2, 5) | processor(10, 7),
        processor(0, 12) | processor(1, 6) | processor(10, 17),
    )
    assert sentence == (
        "the processor slowed itself down because of heat: the core of cpu10 10 times (and on 2 other processors)"
    )


def test_a_package_is_one_however_many_processors_show_its_count(tree):
    before, after = {}, {}
    for number in range(8):
        before |= processor(number, 0, 100)
        after |= processor(number, 0, 103)
    (sentence,) = watched(tree, before, after)
    assert sentence == "the processor slowed itself down because of heat: the package of cpu0 3 times"


def test_the_time_is_told_where_the_kernel_keeps_it(tree):
    core, package = watched(tree, processor(0, 0, 0, 1000, 5000), processor(0, 1, 1, 1250, 8000))
    assert core.endswith("1 time, for 0.25 s")
    assert package.endswith("1 time, for 3.00 s")


def test_a_time_that_grows_without_a_count_is_no_event(tree):
    assert watched(tree, processor(0, 1, 1, 10, 10), processor(0, 1, 1, 20, 20)) == ()


def test_counters_that_vanish_appear_or_go_back_say_nothing(tree):
    assert watched(tree, processor(0, 5, 5), processor(0, 4, 0) | processor(1, 9, 9)) == ()
    assert watched(tree, processor(0, 5, 5), processor(0, "x", "")) == ()


def test_the_probe_counts_processors(tree):
    assert X86Throttle().probe(tree({})).availability is Availability.ABSENT
    found = X86Throttle().probe(tree(processor(0) | processor(1)))
    assert found.availability is Availability.AVAILABLE
    assert "2 processors" in found.detail


PATHS = st.builds(
    "/sys/devices/system/cpu/cpu{}/thermal_throttle/{}".format,
    st.integers(0, 300),
    st.sampled_from(["core_throttle_count", "package_throttle_count", "core_throttle_total_time_ms"]),
)
COUNTS = st.dictionaries(PATHS, st.integers(0, 2**40), max_size=12)


@given(COUNTS, COUNTS)
def test_any_two_readings_give_at_most_a_sentence_for_cores_and_one_for_packages(start, end):
    sentences = describe(start, end)
    assert len(sentences) <= 2
    grown = {path for path in end if path in start and end[path] > start[path] and path.endswith("_count")}
    assert bool(sentences) == bool(grown)
