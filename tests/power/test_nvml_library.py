"""NVML through the real package nvidia-ml-py and a library with NVML's own interface, loaded as the real one is."""

from __future__ import annotations

import ctypes
import importlib.machinery
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nvidia_cards import CARD, SILENT, get, put, without, write_cards
from powerlab.boards.simulator.parts.nvml import LIBRARY
from powerlab.domain.power import Availability
from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, load, session
from powerlab.sysroot import Sysroot

GRAPHICS, MEMORY = 0, 2
QUERIES = {
    "nvmlDeviceGetPowerUsage": ((), "power_average_mw"),
    "nvmlDeviceGetTotalEnergyConsumption": ((), "energy_mj"),
    "nvmlDeviceGetPowerManagementLimit": ((), "power_limit_mw"),
    "nvmlDeviceGetEnforcedPowerLimit": ((), "power_limit_mw"),
    "nvmlDeviceGetPowerManagementDefaultLimit": ((), "power_limit_default_mw"),
    "nvmlDeviceGetCurrentClocksEventReasons": ((), "clocks_event_reasons"),
    "nvmlDeviceGetTemperature": ((0,), "temperature_c"),
}
FIELDS = {185: "power_average_mw", 186: "power_instant_mw", 187: "power_limit_min_mw", 188: "power_limit_max_mw"}
FIELDS |= {189: "power_limit_default_mw", 190: "power_limit_mw"}


def test_every_question_is_answered_from_its_file(tmp_path: Path) -> None:
    with session(write_cards(tmp_path, driver_version="570.1", nvml_version="12.570.1")) as library:
        card = library.device(0)
        assert list(library.devices()) == [0]
        assert library.text("nvmlSystemGetDriverVersion") == "570.1"
        assert library.text("nvmlSystemGetNVMLVersion") == "12.570.1"
        assert library.text("nvmlDeviceGetName", card) == CARD["name"]
        assert library.text("nvmlDeviceGetUUID", card) == CARD["uuid"]
        for function, (arguments, name) in QUERIES.items():
            assert library.ask(function, card, *arguments) == CARD[name], function
        assert library.ask("nvmlDeviceGetPowerManagementLimitConstraints", card) == [100_000, 250_000]
        assert library.ask("nvmlDeviceGetClockInfo", card, GRAPHICS) == 210
        assert library.ask("nvmlDeviceGetMaxClockInfo", card, MEMORY) == 8001
        assert library.ask("nvmlDeviceGetSupportedMemoryClocks", card) == [405, 8001]
        assert library.ask("nvmlDeviceGetSupportedGraphicsClocks", card, 8001) == [300, 600, 900, 1200]
        assert library.ask("nvmlDeviceGetUtilizationRates", card).gpu == 7
        assert library.ask("nvmlDeviceGetViolationStatus", card, 0).violationTime == 0
        assert library.ask("nvmlDeviceGetTemperatureV", card, 0) == 41


def test_field_values_say_their_type_and_when(tmp_path: Path) -> None:
    with session(write_cards(tmp_path)) as library:
        answers = library.ask("nvmlDeviceGetFieldValues", library.device(0), [*FIELDS, 83, 191, 12345])
    for answer, name in zip(answers, FIELDS.values(), strict=False):
        assert (answer.nvmlReturn, answer.value.uiVal) == (0, CARD[name])
        assert answer.timestamp > 1e15
    for answer in answers[len(FIELDS) : -1]:
        assert (answer.nvmlReturn, answer.valueType, answer.value.ullVal) == (0, 3, CARD["energy_mj"])
    assert answers[-1].nvmlReturn == 3, "a field nobody knows fails inside the answer"


def test_a_metric_without_a_file_is_not_supported(tmp_path: Path) -> None:
    with session(write_cards(tmp_path, [SILENT])) as library:
        card = library.device(0)
        for function, (arguments, _) in QUERIES.items():
            with pytest.raises(NvmlError) as caught:
                library.ask(function, card, *arguments)
            assert caught.value.unsupported, function
        assert [answer.nvmlReturn for answer in library.ask("nvmlDeviceGetFieldValues", card, [*FIELDS])] == [3] * 6


def test_each_tree_has_a_library_of_its_own(tmp_path: Path) -> None:
    one = write_cards(tmp_path / "one", [{**CARD, "name": "One"}])
    two = write_cards(tmp_path / "two", [{**CARD, "name": "Two"}, {**CARD, "name": "Three"}])
    with session(one) as first, session(two) as second:
        assert first.text("nvmlDeviceGetName", first.device(0)) == "One"
        assert [second.text("nvmlDeviceGetName", second.device(index)) for index in second.devices()] == [
            "Two",
            "Three",
        ]


def _host_has_a_library() -> bool:
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def test_a_trees_library_is_never_taken_for_the_hosts(tmp_path: Path) -> None:
    """The loader would do that with a library that bears the real one's soname."""
    before = _host_has_a_library()
    with session(write_cards(tmp_path)) as library:
        assert library.text("nvmlDeviceGetName", library.device(0)) == CARD["name"]
        assert _host_has_a_library() == before


def test_a_tree_written_anew_is_read_anew(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path / "tree", [{**CARD, "power_average_mw": 1}])
    with session(sysroot) as library:
        assert library.ask("nvmlDeviceGetPowerUsage", library.device(0)) == 1
    (tmp_path / "tree").rename(tmp_path / "old")
    with session(write_cards(tmp_path / "tree", [{**CARD, "power_average_mw": 2}])) as library:
        assert library.ask("nvmlDeviceGetPowerUsage", library.device(0)) == 2


def test_settings_are_written_to_their_files(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    with session(sysroot) as library:
        library.ask("nvmlDeviceSetPowerManagementLimit", library.device(0), 150_000)
        library.ask("nvmlDeviceSetGpuLockedClocks", library.device(0), 300, 600)
        assert (get(sysroot, "power_limit_mw"), get(sysroot, "locked_clocks_mhz")) == ("150000", "300-600")
        library.ask("nvmlDeviceResetGpuLockedClocks", library.device(0))
        assert get(sysroot, "locked_clocks_mhz") == "unlocked"


@pytest.mark.parametrize("limit_mw", [0, 99_999, 250_001])
def test_a_limit_outside_the_cards_range_is_refused(tmp_path: Path, limit_mw: int) -> None:
    sysroot = write_cards(tmp_path)
    with session(sysroot) as library, pytest.raises(NvmlError, match="Invalid Argument"):
        library.ask("nvmlDeviceSetPowerManagementLimit", library.device(0), limit_mw)
    assert get(sysroot, "power_limit_mw") == "200000"


def test_a_plain_user_may_look_and_not_touch(tmp_path: Path) -> None:
    with session(write_cards(tmp_path, no_permission="")) as library:
        assert library.ask("nvmlDeviceGetPowerUsage", library.device(0)) == 98_000
        with pytest.raises(NvmlError) as caught:
            library.ask("nvmlDeviceSetPowerManagementLimit", library.device(0), 150_000)
    assert caught.value.denied


@pytest.mark.parametrize(
    ("code", "availability", "detail", "remedy"),
    [
        (4, Availability.DENIED, "this user may not", "usermod"),
        (9, Availability.BROKEN, "driver is not loaded", "modprobe nvidia"),
        (18, Availability.BROKEN, "different versions", "reboot"),
        (999, Availability.BROKEN, "Unknown Error", "nvidia-smi"),
    ],
)
def test_a_library_that_does_not_start_says_why_and_what_to_do(
    tmp_path: Path, code: int, availability: Availability, detail: str, remedy: str
) -> None:
    with pytest.raises(NvmlUnavailableError) as caught, session(write_cards(tmp_path, init_error=code)):
        pass
    assert caught.value.availability is availability
    assert detail in caught.value.detail
    assert remedy in caught.value.remedy


def test_a_tree_without_a_library_has_none(tmp_path: Path) -> None:
    with pytest.raises(NvmlUnavailableError, match="no NVIDIA library") as caught:
        load(Sysroot(tmp_path))
    assert caught.value.availability is Availability.ABSENT


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF" + bytes(60)])
def test_a_file_that_is_no_library_is_told_as_such(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / LIBRARY.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(NvmlUnavailableError, match="cannot be loaded") as caught:
        load(Sysroot(tmp_path))
    assert caught.value.availability is Availability.BROKEN


def test_a_library_outside_of_any_simulation_finds_no_driver(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    sysroot.path("/simulation").rename(tmp_path / "elsewhere")
    with pytest.raises(NvmlUnavailableError, match="driver is not loaded"), session(sysroot):
        pass


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where nvidia-ml-py is not installed."""
    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", lambda *_: None)
    monkeypatch.setitem(sys.modules, "pynvml", None)


def add_pci(sysroot: Sysroot, vendor: str, kind: str) -> None:
    device = sysroot.path("/sys/bus/pci/devices/0000:01:00.0")
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")


@pytest.mark.usefixtures("no_package")
@pytest.mark.parametrize("has_driver", [True, False])
def test_a_card_or_a_driver_without_the_package_can_be_mended(tmp_path: Path, has_driver: bool) -> None:
    sysroot = write_cards(tmp_path)
    add_pci(sysroot, "0x10de", "0x030000")
    if has_driver:
        sysroot.path("/proc/driver/nvidia").mkdir(parents=True)
        sysroot.path("/proc/driver/nvidia/version").touch()
    with pytest.raises(NvmlUnavailableError, match="nvidia-ml-py is not installed") as caught:
        load(sysroot)
    assert caught.value.availability is Availability.BROKEN
    assert ("driver" in caught.value.detail) is has_driver
    assert "pip install 'powerlab[nvidia]'" in caught.value.remedy


@pytest.mark.parametrize(
    ("vendor", "kind", "availability"),
    [
        ("0x10de", "0x030200", Availability.BROKEN),
        ("0x10de", "0x040300", Availability.ABSENT),
        ("0x8086", "0x030000", Availability.ABSENT),
        ("", "", Availability.ABSENT),
    ],
)
def test_a_missing_driver_matters_where_there_is_a_card(
    tmp_path: Path, vendor: str, kind: str, availability: Availability
) -> None:
    """A card's audio function is no card."""
    sysroot = write_cards(tmp_path, init_error=12)
    add_pci(sysroot, vendor, kind)
    with pytest.raises(NvmlUnavailableError) as caught, session(sysroot):
        pass
    assert caught.value.availability is availability
    assert ("libnvidia-ml.so.1 is missing" in caught.value.detail) is (availability is Availability.BROKEN)
    assert bool(caught.value.remedy) is (availability is Availability.BROKEN)


@pytest.mark.usefixtures("no_package")
def test_without_card_and_package_nothing_is_missed(tmp_path: Path) -> None:
    with pytest.raises(NvmlUnavailableError, match="no NVIDIA card") as caught:
        load(write_cards(tmp_path))
    assert caught.value.availability is Availability.ABSENT
    assert caught.value.remedy == ""


@pytest.mark.usefixtures("no_package")
def test_the_hosts_own_package_is_asked_for_the_host() -> None:
    with pytest.raises(NvmlUnavailableError, match=r"nvidia-ml-py is not installed|no NVIDIA card"):
        load(Sysroot())


def test_nvml_is_started_once_for_all_who_use_it_and_then_let_go(tmp_path: Path) -> None:
    library = load(write_cards(tmp_path))
    with library.started(), library.started():
        assert library.ask("nvmlDeviceGetCount") == 1
    with pytest.raises(NvmlError, match="Uninitialized"):
        library.ask("nvmlDeviceGetCount")
    with library.started():
        assert library.ask("nvmlDeviceGetPowerUsage", library.device(0)) == 98_000, "handles are fetched anew"


def test_threads_share_a_library(tmp_path: Path) -> None:
    library = load(write_cards(tmp_path))
    failures: list[Exception] = []

    def read() -> None:
        try:
            for _ in range(50):
                with library.started():
                    assert library.ask("nvmlDeviceGetPowerUsage", library.device(0)) == 98_000
        except (NvmlError, AssertionError) as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_end_that_fails_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class GoneError(Exception):
        value = 15

    def fail() -> None:
        raise GoneError("GPU is lost")

    module = SimpleNamespace(
        NVMLError=GoneError, nvmlInit=lambda: None, nvmlShutdown=fail, nvmlDeviceGetCount=lambda: 2
    )
    library = Library(module)
    with library.started():
        assert list(library.devices()) == [0, 1]


def test_an_old_package_lacks_functions(tmp_path: Path) -> None:
    with session(write_cards(tmp_path)) as library, pytest.raises(NvmlError, match="has no nvmlDeviceDance") as caught:
        library.ask("nvmlDeviceDance")
    assert caught.value.unsupported


def test_a_card_that_is_lost_says_so(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    with session(sysroot) as library:
        card = library.device(0)
        sysroot.path("/simulation/nvml/gpu0").rename(tmp_path / "gone")
        with pytest.raises(NvmlError, match="lost"):
            library.ask("nvmlDeviceGetPowerUsage", card)


def test_what_is_no_card_is_refused(tmp_path: Path) -> None:
    with session(write_cards(tmp_path)) as library:
        with pytest.raises(NvmlError, match="Invalid Argument"):
            library.device(1)
        with pytest.raises(NvmlError, match="Invalid Argument"):
            library.ask("nvmlDeviceGetPowerUsage", ctypes.c_void_p(0))


@pytest.fixture(scope="module")
def still_card(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """Asks for the power of a card whose file holds a text: a number of mW, or an error."""
    sysroot = write_cards(tmp_path_factory.mktemp("fuzzed"))

    def power(text: str) -> object:
        sysroot.path("/simulation/nvml/gpu0/power_average_mw").write_bytes(text.encode("utf-8", "surrogatepass"))
        with session(sysroot) as library:
            return library.ask("nvmlDeviceGetPowerUsage", library.device(0))

    return power


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.text(max_size=200), st.from_regex(r"[0-9]{1,25}[ \n]*", fullmatch=True)))
def test_whatever_a_file_holds_is_a_number_or_an_error(still_card: Callable[[str], object], text: str) -> None:
    try:
        assert isinstance(still_card(text), int)
    except NvmlError:
        assert not text[:1].isascii() or not text[:1].isdecimal()


@settings(max_examples=60, deadline=None)
@given(value=st.integers(0, 2**32 - 1))
def test_every_reading_comes_through_unchanged(still_card: Callable[[str], object], value: int) -> None:
    assert still_card(f"{value:<20d}\n") == value


@settings(max_examples=40, deadline=None)
@given(name=st.binary(max_size=200))
def test_whatever_a_name_holds_is_a_text_or_an_error(tmp_path_factory: pytest.TempPathFactory, name: bytes) -> None:
    """A driver in trouble gives garbage, and the probe must go on."""
    sysroot = write_cards(tmp_path_factory.mktemp("garbled"))
    sysroot.path("/simulation/nvml/gpu0/name").write_bytes(name)
    with session(sysroot) as library:
        try:
            text = library.text("nvmlDeviceGetName", library.device(0))
        except NvmlError:
            text = ""
        assert isinstance(text, str)
        assert list(library.devices()) == [0]


def test_a_metric_may_come_and_go(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [without("energy_mj")])
    with session(sysroot) as library:
        with pytest.raises(NvmlError):
            library.ask("nvmlDeviceGetTotalEnergyConsumption", library.device(0))
        put(sysroot, "energy_mj", 2**40)
        assert library.ask("nvmlDeviceGetTotalEnergyConsumption", library.device(0)) == 2**40
