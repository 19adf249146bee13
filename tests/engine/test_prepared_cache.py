"""The cache of prepared models: the same bits as without it, whatever happens to its files."""

import errno
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.backends.onnx_export import export_onnx
from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.prepared import cache as cache_module
from powerlab.engine.prepared import codec, contents, key
from powerlab.engine.prepared.cache import Cache, cache_folder, configured_cache, room

MODEL = "squeezenet@48"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty cache with room for anything here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("POWERLAB_CACHE", "1G")
    return cache_folder()


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(export_onnx(load_graph(MODEL)))
    return path


@pytest.fixture
def prepares(monkeypatch):
    """The models that were prepared, not found."""
    seen = []

    def counted(graph, *args):
        seen.append(graph.name)
        return prepare(graph, *args)

    from powerlab.engine import session

    prepare = session.prepare
    monkeypatch.setattr(session, "prepare", counted)
    return seen


def outputs(session: Session) -> bytes:
    generator = np.random.default_rng(7)
    inputs = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in session.inputs.items()}
    return b"".join(value.tobytes() for value in session.run(inputs).values())


def kept(folder):
    return sorted(folder.glob("*.prepared"))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("squeezenet@48", {"threads": 2}),
        ("mobilenetv2@64", {"threads": 1, "batch_size": 2}),
        ("densenet121@32", {"threads": 2, "batch_size": 2, "slices": 2}),
        ("lstm2", {"threads": 2}),
        ("vit-tiny@224", {"threads": 1}),
    ],
)
def test_a_model_from_the_cache_gives_the_same_bits_and_the_same_account_of_itself(folder, prepares, name, options):
    plain = Session(name, cached=False, **options)
    assert not folder.exists()
    Session(name, **options)
    assert len(prepares) == 2
    found = Session(name, **options)
    assert len(prepares) == 2
    assert outputs(found) == outputs(plain)
    assert (found.inputs, found.outputs, found.dtypes) == (plain.inputs, plain.outputs, plain.dtypes)
    assert (found.steps(), found.work, found.choices) == (plain.steps(), plain.work, plain.choices)


def test_what_decides_a_plan_decides_which_file_it_comes_from(model, prepares, folder, monkeypatch):
    def loaded(**options) -> None:
        Session(model, **{"threads": 1, **options})

    loaded()
    loaded()
    assert len(prepares) == 1
    loaded(threads=2)
    loaded(batch_size=2)
    loaded(threads=2, batch_size=2, slices=2)
    loaded(shapes={"x": (1, 3, 64, 64)})
    monkeypatch.setenv("POWERLAB_TIER", "sse4" if Session(model, cached=False).tier != "sse4" else "avx2")
    prepares.clear()
    loaded()
    assert len(prepares) == 1
    monkeypatch.setattr(key, "engine_fingerprint", lambda: "another version")
    loaded()
    assert len(prepares) == 2
    weights = onnx.load(model)
    weights.graph.initializer[0].raw_data = bytes(len(weights.graph.initializer[0].raw_data))
    onnx.save(weights, model)
    loaded()
    assert len(prepares) == 3
    assert len(kept(folder)) == 8


def test_another_version_of_the_engine_is_one_whose_sources_differ(tmp_path, monkeypatch):
    (tmp_path / "passes").mkdir()
    source = tmp_path / "passes" / "fold.py"
    source.write_text("x = 1\n")
    before = list(key._sources(tmp_path))
    assert len(before) == 1
    source.write_text("x = 22\n")
    assert list(key._sources(tmp_path)) != before
    (tmp_path / "more.py").touch()
    assert len(list(key._sources(tmp_path))) == 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A cache with one model, its key, and the bytes of its file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("POWERLAB_CACHE", "1G")
        Session("squeezenet@32", threads=1)
        cache = configured_cache()
    (path,) = kept(cache.folder)
    assert cache.find(path.stem, 1) is not None
    return cache, path.stem, path.read_bytes()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_damaged_file_is_taken(whole, data):
    cache, name, content = whole
    path = cache.folder / f"{name}.prepared"
    damaged = bytearray(content)
    if data.draw(st.booleans(), "truncated"):
        del damaged[data.draw(st.integers(0, len(content) - 1), "length") :]
    else:
        at = data.draw(st.integers(0, 4096) | st.integers(0, len(content) - 1), "byte")
        damaged[at] ^= 1 << data.draw(st.integers(0, 7), "bit")
    path.write_bytes(damaged)
    assert cache.find(name, 1) is None
    path.write_bytes(content)
    assert cache.find(name, 1) is not None
    assert cache.find("0" * 64, 1) is None


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_sound_digests_over_nonsense_are_no_model(whole, nonsense, short):
    """Whoever wrote it: a file whose digest is right may still hold something else."""
    cache, _, content = whole
    body = nonsense if short else content[codec.HEAD_BYTES : -len(nonsense) or None] + nonsense
    path = cache.folder / "nonsense.prepared"
    path.write_bytes(codec.MAGIC + contents.parts_digest((body,)) + body)
    found = cache.find("nonsense", 1)
    assert found is None


def test_a_damaged_file_is_replaced(model, folder, prepares):
    expected = outputs(Session(model, threads=1))
    (path,) = kept(folder)
    path.write_bytes(path.read_bytes()[:-1000])
    assert outputs(Session(model, threads=1)) == expected
    assert len(prepares) == 2
    Session(model, threads=1)
    assert len(prepares) == 2


def test_a_file_is_verified_once_and_again_when_it_was_written(model, folder, monkeypatch):
    monkeypatch.setattr(contents, "_SETTLED_NS", -(10**12))
    Session(model, threads=1)
    Session(model, threads=1)
    (path,) = kept(folder)
    with monkeypatch.context() as patch:
        patch.setattr(contents.os, "pread", None)  # nothing is read again
        Session(model, threads=1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert configured_cache().find(path.stem, 1) is None


def test_a_digest_is_not_trusted_while_its_file_is_new(tmp_path):
    path, memory = tmp_path / "file", tmp_path / "memory"
    path.write_bytes(b"a")
    contents.file_digest(path, 1, memory=memory)
    assert not memory.exists()


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 20))
def test_the_digest_of_parts_is_that_of_the_file(tmp_path_factory, parts, begin):
    path = tmp_path_factory.mktemp("digest") / "file"
    path.write_bytes(bytes(begin) + b"".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contents, "_CHUNK_BYTES", 16)
        assert contents.parts_digest(parts) == contents.file_digest(path, 2, begin=begin)


def test_processes_that_begin_together_get_the_same(model, folder):
    program = "import sys; from powerlab.engine import Session; print(Session(sys.argv[1], threads=1).steps())"
    command = [sys.executable, "-c", program, str(model)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) for _ in range(3)]
    found = {process.communicate(timeout=60)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(found) == 1
    assert len(kept(folder)) == 1
    assert not list(folder.glob("*.tmp"))
    assert configured_cache().find(kept(folder)[0].stem, 1) is not None


def test_what_was_not_used_for_the_longest_makes_room(folder, monkeypatch):
    for threads in (1, 2, 3):
        Session(MODEL, threads=threads)
    first, second, third = sorted(configured_cache().entries(), key=lambda entry: entry.used_ns)
    os.utime(folder / f"{second.path.stem}.used", ns=(0, 0))
    monkeypatch.setenv("POWERLAB_CACHE", str(3 * first.size_bytes + first.size_bytes // 2))
    Session(MODEL, threads=4)
    left = {entry.path for entry in configured_cache().entries()}
    assert len(left) == 3
    assert {first.path, third.path} < left
    monkeypatch.setenv("POWERLAB_CACHE", "1K")
    Session(MODEL, threads=5)
    assert {entry.path for entry in configured_cache().entries()} == left


def test_what_a_dead_process_left_goes(folder):
    folder.mkdir(parents=True, mode=0o700)
    old, new = folder / "a.1-1.tmp", folder / "b.1-1.tmp"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    Session(MODEL, threads=1)
    assert not old.exists()
    assert new.exists()


def test_a_full_disk_costs_the_cache_alone(folder, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache_module, "write_parts", full)
    monkeypatch.setattr(contents, "write_parts", full)
    assert outputs(Session(MODEL, threads=1)) == outputs(Session(MODEL, threads=1, cached=False))
    assert kept(folder) == []


def test_a_folder_that_others_may_write_to_is_not_used(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert configured_cache() is None
    folder.chmod(0o700)
    assert configured_cache() == Cache(folder=folder, room_bytes=1 << 30)


def test_weights_in_another_file_are_no_part_of_a_key(tmp_path, model, folder):
    beside = tmp_path / "beside.onnx"
    onnx.save(onnx.load(model), beside, save_as_external_data=True, location="weights.bin")
    Session(beside, threads=1)
    assert kept(folder) == []


def test_a_model_that_changes_while_it_is_loaded_is_not_kept(model, folder, monkeypatch):
    from powerlab.engine import session

    prepare = session.prepare

    def slow(*args):
        found = prepare(*args)
        model.write_bytes(model.read_bytes() + b"\x1a\x00")
        return found

    monkeypatch.setattr(session, "prepare", slow)
    Session(model, threads=1)
    assert kept(folder) == []


def test_errors_are_those_without_a_cache(tmp_path):
    with pytest.raises(PowerlabError, match="not a model file"):
        Session(tmp_path / "none.onnx")
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(PowerlabError, match="no ONNX"):
        Session(tmp_path / "empty.onnx")


@pytest.mark.parametrize(
    ("text", "size"), [("off", 0), ("", 0), ("0", 0), ("500M", 500 << 20), ("2G", 2 << 30), ("7", 7)]
)
def test_sizes(text, size):
    assert room(text) == size


def test_the_command_lists_and_clears(model, folder, capsys, monkeypatch):
    Session(model, threads=1)
    assert main(["engine", "cache"]) == EXIT_OK
    printed = capsys.readouterr().out
    assert "squeezenet" in printed
    assert "1 prepared model(s)" in printed
    assert main(["engine", "cache", "--clear"]) == EXIT_OK
    assert "removed 1 prepared model(s)" in capsys.readouterr().out
    assert list(folder.iterdir()) == []
    monkeypatch.setenv("POWERLAB_CACHE", "much")
    assert main(["engine", "cache"]) == EXIT_USAGE
    assert "give a size such as 500M or 2G" in capsys.readouterr().err
