"""What holds for every test: signals arrive, state is the tests' own, and in CI nothing is skipped."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

from lost_workers import LostWorkers
from memory import keep_temporary_files, memory_folder
from requires import LACKED
from turns import BY_CHANGE, PARTS, Turns, chosen_part

FAST = 3
"""Of so many examples of a property the fast tests try one: others each time. CI tries all, the same each time."""

ROOM_BYTES = 8 << 30
"""Where memory has so much room for files, those of the tests lie there; a machine of 16 GB has, and builds of the
wheels take the most."""

# Read when numpy is loaded. Many processes share the cores, and threads that wait for each other spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_PATIENCE_S = 600
_SLOWER = 2.5
"""A campaign's minutes are those of two cores to itself; beside others on slow ones it takes so many times as long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the long campaigns take turns."""
    said = f"of the long campaigns run this part only: 1 to {PARTS}, or {BY_CHANGE}: whose turn it is with the commit"
    parser.addoption("--campaigns-part", metavar="PART", help=said)


def pytest_configure(config: pytest.Config) -> None:
    """Let tests interrupt processes they start, also where this run was started with signals ignored.

    A shell starts background jobs with SIGINT ignored, nohup with SIGHUP; children inherit "ignored", but not handlers.
    """
    if "TMPDIR" not in os.environ and (memory := memory_folder(ROOM_BYTES)):  # workers get it from who starts them
        keep_temporary_files(memory)
    if (part := config.getoption("--campaigns-part")) is not None:
        try:
            config.pluginmanager.register(Turns(chosen_part(part, config.rootpath)))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(LostWorkers(config))
    settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
    settings.load_profile("untimed")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker is busy with one of them alone at the end."""
    if config.option.markexpr == "not campaign":
        _try_fewer_examples(items)
    minutes: defaultdict[Path, float] = defaultdict(float)
    for item in items:
        for marker in item.iter_markers("campaign"):
            own = marker.kwargs.get("minutes", 0.1)
            minutes[item.path] = max(minutes[item.path], own)
            item.add_marker(pytest.mark.timeout(_PATIENCE_S + 60 * _SLOWER * own))
    items.sort(key=lambda item: (-minutes[item.path], item.path.parent.name != "e2e"))


def _try_fewer_examples(items: list[pytest.Item]) -> None:
    """Let each property that Hypothesis tries have a share of its examples; all tests of a function have one object."""
    functions = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for function in filter(is_hypothesis_test, functions):
        usual = function._hypothesis_internal_use_settings
        function._hypothesis_internal_use_settings = settings(usual, max_examples=-(-usual.max_examples // FAST))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over fifteen thousand tests and all that they import: none of it ever goes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _no_handler_left_behind() -> Iterator[None]:
    """Fail the test that leaves a signal handler behind, not the later one that stumbles over it."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in ends]
    yield
    assert [signal.getsignal(number) for number in ends] == before


@pytest.fixture(scope="session", autouse=True)
def _state_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what a developer's own powerlab has stored, such as calibrations, out of the tests, and theirs out of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("POWERLAB_STATE_DIR", raising=False)  # it would outweigh what single tests set
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def _skipped(reporter: pytest.TerminalReporter | None) -> tuple[Counter[str], int]:
    """Return what instructions how many skipped tests want, and how many were skipped for any other reason."""
    reports = [] if reporter is None else reporter.stats.get("skipped", [])
    reasons = [one.longrepr[2] if isinstance(one.longrepr, tuple) else "" for one in reports]
    lacked = Counter(reason.partition(LACKED)[2].strip() for reason in reasons if LACKED in reason)
    return lacked, len(reports) - lacked.total()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turn a passing run into a failing one where ``CI`` is set and more is skipped than what the processor lacks."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and exitstatus == pytest.ExitCode.OK and _skipped(reporter)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why such a run failed, and what no processor of this kind can run."""
    lacked, others = _skipped(terminalreporter)
    if lacked:
        kinds = ", ".join(f"{what} ({count})" for what, count in sorted(lacked.items()))
        terminalreporter.write_line(f"{lacked.total()} test(s) skipped: {LACKED} {kinds}.")
    if os.environ.get("CI") and others:
        terminalreporter.write_line(f"CI is set, so {others} skipped test(s) count as a failure.", red=True)
