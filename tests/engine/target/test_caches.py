"""The sizes of the caches: what sysfs says, what a file says against it, and what neither may say."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.engine.target.caches import (
    ASSUMED,
    CACHES_VARIABLE,
    FILE_NAME,
    count_cores,
    find_caches,
    parse_size,
    read_caches_file,
)
from powerlab.sysroot import Sysroot

KIB, MIB = 1 << 10, 1 << 20


def cache(level: int, size: str, shared: str, kind: str = "Unified", ways: str = "16") -> dict[str, str]:
    return {
        "level": str(level),
        "type": kind,
        "size": size,
        "shared_cpu_list": shared,
        "ways_of_associativity": ways,
    }


def machine(base: Path, *cores: list[dict[str, str]]) -> Sysroot:
    for number, caches in enumerate(cores):
        for index, files in enumerate(caches):
            folder = base / f"sys/devices/system/cpu/cpu{number}/cache/index{index}"
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(f"{text}\n")
    return Sysroot(base)


def data(size: str, shared: str, ways: str = "12") -> dict[str, str]:
    return cache(1, size, shared, "Data", ways)


def state_file(root: Sysroot, text: str) -> Path:
    path = root.path("/var/lib/powerlab") / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(CACHES_VARIABLE, raising=False)


def test_a_core_has_what_sysfs_says(tmp_path):
    instructions = cache(1, "32K", "0", "Instruction")
    found = find_caches(
        machine(tmp_path, [data("48K", "0"), instructions, cache(2, "1024K", "0"), cache(3, "32768K", "0-1")])
    )
    assert (found.l1_bytes, found.l1_ways, found.l2_bytes, found.l3_bytes) == (48 * KIB, 12, MIB, 32 * MIB)
    assert found.origin == "sysfs"


def test_a_second_level_that_cores_share_is_divided_among_them(tmp_path):
    cluster = [[data("32K", str(core)), cache(2, "2048K", "0-3")] for core in range(4)]
    assert find_caches(machine(tmp_path, *cluster)).l2_bytes == 512 * KIB


def test_the_two_threads_of_a_core_count_as_one(tmp_path):
    cores = [[data("32K", "0,1"), cache(2, "1M", "0-1")] for _ in range(2)]
    found = find_caches(machine(tmp_path, *cores))
    assert (found.l1_bytes, found.l2_bytes) == (32 * KIB, MIB)


def test_a_core_with_the_same_sizes_is_like_the_one_before(tmp_path):
    first = [data("48K", "0"), cache(2, "1M", "0"), cache(3, "32M", "0-1")]
    alike = [{"size": files["size"]} for files in first]
    other = [data("48K", "2"), cache(2, "512K", "2"), cache(3, "32M", "0-2")]
    assert find_caches(machine(tmp_path / "two", first, alike)).l2_bytes == MIB
    assert find_caches(machine(tmp_path / "three", first, alike, other)).l2_bytes == 512 * KIB


def test_of_unlike_cores_the_least_counts(tmp_path):
    big = [data("64K", "0", "4"), cache(2, "1M", "0")]
    little = [data("32K", "1", "8"), cache(2, "256K", "1")]
    found = find_caches(machine(tmp_path, big, little))
    assert (found.l1_bytes, found.l1_ways, found.l2_bytes, found.l3_bytes) == (32 * KIB, 4, 256 * KIB, 0)


@pytest.mark.parametrize(
    "caches",
    [
        [],
        [data("48K", "0")],
        [data("many", "0"), cache(2, "1M", "0")],
        [data("", "0"), cache(2, "1M", "0")],
        [{"level": "1"}, cache(2, "1M", "0")],
        [data("0K", "0"), cache(2, "1M", "0")],
    ],
)
def test_where_sysfs_does_not_say_others_do(tmp_path, caches):
    found = find_caches(machine(tmp_path, caches))
    assert found.origin in {"sysconf", "assumed"}
    assert found.l1_bytes >= KIB
    assert found.l2_bytes >= 4 * KIB


def test_absent_ways_and_sharers_do_no_harm(tmp_path):
    first = {"level": "1", "type": "Data", "size": "32K", "ways_of_associativity": "0"}
    found = find_caches(machine(tmp_path, [first, {"level": "2", "type": "Unified", "size": "512K"}]))
    assert (found.l1_ways, found.l2_bytes, found.origin) == (ASSUMED.l1_ways, 512 * KIB, "sysfs")


def test_a_file_in_the_state_directory_outweighs_sysfs(tmp_path):
    root = machine(tmp_path, [data("48K", "0"), cache(2, "1M", "0")])
    path = state_file(root, "l2_bytes = 524288\n")
    found = find_caches(root)
    assert (found.l1_bytes, found.l2_bytes, found.origin) == (48 * KIB, 512 * KIB, str(path))


def test_the_file_of_the_variable_outweighs_all(tmp_path, monkeypatch):
    root = machine(tmp_path / "root", [data("48K", "0"), cache(2, "1M", "0")])
    state_file(root, "l2_bytes = 524288\nl3_bytes = 1048576\n")
    path = tmp_path / "mine.toml"
    path.write_text("l1_bytes = 16384\nl1_ways = 4\n")
    monkeypatch.setenv(CACHES_VARIABLE, str(path))
    found = find_caches(root)
    assert (found.l1_bytes, found.l1_ways, found.l2_bytes, found.l3_bytes) == (16 * KIB, 4, MIB, 0)
    assert found.origin == str(path)


def test_an_empty_file_changes_nothing(tmp_path):
    root = machine(tmp_path, [data("48K", "0"), cache(2, "1M", "0")])
    state_file(root, "# nothing\n")
    assert find_caches(root).origin == "sysfs"


def test_a_named_file_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHES_VARIABLE, str(tmp_path / "no.toml"))
    with pytest.raises(PowerlabError, match=r"no\.toml cannot be read \(No such file or directory\); fix it, or unset"):
        find_caches()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("l1_bytes = 48K", "is not valid TOML"),
        ("l1_bytes = '48K'", "says l1_bytes = 48K; give an integer of bytes, 1024 or more"),
        ("l1_bytes = 3.5", "give an integer"),
        ("l1_bytes = true", "give an integer"),
        ("l2_bytes = 0", "give an integer of bytes, 4096 or more"),
        ("l1_ways = 0", "give an integer of ways, 1 or more"),
        ("l3_bytes = -1", "give an integer"),
        ("l2_bytes = 999999999999999", "give an integer"),
        ("l4_bytes = 1", "may say l1_bytes, l1_ways, l2_bytes, l3_bytes only"),
        ("[l1]\nsize = 3", "may say"),
    ],
)
def test_what_a_file_may_not_say_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "caches.toml"
    path.write_text(text)
    with pytest.raises(PowerlabError) as caught:
        read_caches_file(path)
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=60))
def test_any_file_is_understood_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "caches.toml"
    path.write_bytes(content)
    try:
        said = str(read_caches_file(path))
    except PowerlabError as error:
        said = str(error)
    assert "\n" not in said


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_none(text):
    try:
        size = parse_size(text)
    except ValueError:
        return
    assert size > 0


@pytest.mark.parametrize(("text", "size"), [("48K", 48 * KIB), ("32M", 32 * MIB), ("1G", 1 << 30), ("512", 512)])
def test_sizes_have_units(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "count"), [("0", 1), ("0-3", 4), ("0,4", 2), ("0-1,8-9", 4)])
def test_lists_of_cores_are_counted(text, count):
    assert count_cores(text) == count


def test_this_machine_has_caches():
    found = find_caches()
    assert found.l2_bytes >= found.l1_bytes // 2 > 0
    assert found.l1_ways >= 1
