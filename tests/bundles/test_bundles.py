"""Bundles: made alike twice, every change noticed, every figure recomputed without a database."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab import cli
from powerlab.bundles.agreement import Agreement, changes, repeated
from powerlab.bundles.archive import ArchiveWriter, reading
from powerlab.bundles.manifest import MANIFEST, POINTS, RUNS, Manifest, Member
from powerlab.bundles.reading import open_bundle
from powerlab.bundles.verify import verify
from powerlab.bundles.writing import Packed, write_bundle
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.wire import encode
from recorded_sweep import recorded_sweep
from server_examples import device


def packed(**changes: object) -> Packed:
    swept = recorded_sweep()
    whole = Packed(
        sweep_id=swept.sweep_id,
        device=device(),
        plan=swept.plan,
        runs=swept.runs,
        recorded=swept.traces.__getitem__,
    )
    return replace(whole, **changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "sweep.zip"
    write_bundle(packed(), path)
    return path


def resealed(source: Path, target: Path, changed: dict[str, bytes]) -> Path:
    """Write a bundle with other members and right hashes, as a forger would."""
    import hashlib

    with reading(source) as archive, target.open("w+b") as file:
        manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
        writer, members = ArchiveWriter(file), []
        for member in manifest.members:
            content = changed.get(member.name, archive.read(member.name))
            writer.add(member.name, content)
            members.append(
                Member(name=member.name, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
            )
        writer.add(MANIFEST, encode(replace(manifest, members=tuple(members))))
        writer.close()
    return target


def test_the_same_sweep_gives_the_same_bytes(made, tmp_path):
    write_bundle(packed(), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == made.read_bytes()


def test_everything_comes_back_bit_for_bit(made):
    swept = recorded_sweep()
    with open_bundle(made) as bundle:
        assert bundle.runs == swept.runs
        assert bundle.plan == swept.plan
        assert bundle.manifest.device == device()
        for run_id, traces in swept.traces.items():
            back = {(trace.rail, trace.part): trace for trace in bundle.recorded(run_id)}
            for trace in traces:
                same = back[trace.rail, trace.part]
                assert (same.time_ns == trace.time_ns).all()
                assert (same.value == trace.value).all()


def test_every_figure_of_runs_and_points_is_reproduced(made):
    with open_bundle(made) as bundle:
        found = list(verify(bundle))
    assert [one.kind for one in found].count("run") == 6
    assert [one.kind for one in found].count("point") == 2
    assert all(one.reproduced and len(one.compared) > 10 for one in found)


def test_no_database_toolkit_is_needed(made):
    program = (
        "import sys; sys.modules['sqlalchemy'] = None; sys.modules['fastapi'] = None\n"
        f"from powerlab import cli; sys.exit(cli.main(['bundle', 'verify', {str(made)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == cli.EXIT_OK, done.stderr
    assert "figures reproduced from the raw records" in done.stdout


@given(st.data())
def test_no_changed_byte_goes_unnoticed(made, tmp_path_factory, data):
    content = bytearray(made.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "changed.zip"
    path.write_bytes(content)
    with pytest.raises(PowerlabError) as caught, open_bundle(path):
        pass
    assert str(path) in str(caught.value)


def test_a_changed_member_is_named_in_one_sentence(made, tmp_path, capsys):
    path = tmp_path / "changed.zip"
    with zipfile.ZipFile(made) as archive:
        info = archive.getinfo(RUNS)
    content = bytearray(made.read_bytes())
    content[info.header_offset + 100] ^= 1
    path.write_bytes(content)
    assert cli.main(["bundle", "verify", str(path)]) == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert RUNS in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_bundle_is_refused(tmp_path, capsys, content):
    path = tmp_path / "other.zip"
    path.write_bytes(content)
    assert cli.main(["bundle", "verify", str(path)]) == cli.EXIT_USAGE
    assert "bundle" in capsys.readouterr().err


def test_a_bundle_of_a_later_format_asks_for_an_update(made, tmp_path):
    with reading(made) as archive:
        manifest = msgspec.json.decode(archive.read(MANIFEST), type=Manifest)
    path = tmp_path / "later.zip"
    with path.open("w+b") as file:
        writer = ArchiveWriter(file)
        writer.add(MANIFEST, encode(replace(manifest, format_version=99, members=())))
        writer.close()
    with pytest.raises(PowerlabError, match="update powerlab"), open_bundle(path):
        pass


def test_a_forged_figure_is_not_reproduced(made, tmp_path, capsys):
    runs = list(recorded_sweep().runs)
    run = runs[0]
    better = [replace(one, value=one.value * 0.9) if one.name == "power_w" else one for one in run.metrics]
    runs[0] = replace(run, metrics=tuple(better))
    forged = resealed(made, tmp_path / "forged.zip", {RUNS: b"".join(encode(one) + b"\n" for one in runs)})
    assert cli.main(["bundle", "verify", str(forged)]) == cli.EXIT_INCOMPLETE
    said = " ".join(capsys.readouterr().out.split())
    assert f"run {run.id[:8]}: Power while running: value:" in said
    assert "not reproduced" in said


def test_a_forged_point_is_not_reproduced(made, tmp_path, capsys):
    with reading(made) as archive:
        points = json.loads(archive.read(POINTS))
    points[1]["metrics"][0]["value"] /= 2
    forged = resealed(made, tmp_path / "forged.zip", {POINTS: json.dumps(points).encode()})
    assert cli.main(["bundle", "verify", str(forged), "--json"]) == cli.EXIT_INCOMPLETE
    said = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in said["checked"] if not one["reproduced"]] == ["point"]


def test_a_run_without_its_samples_is_said_to_be(tmp_path):
    swept = recorded_sweep()
    lost = swept.runs[0].id
    path = tmp_path / "lost.zip"
    write_bundle(packed(recorded=lambda run_id: () if run_id == lost else swept.traces[run_id]), path)
    with open_bundle(path) as bundle:
        (found,) = [one for one in verify(bundle) if not one.reproduced]
    assert found.id == lost
    assert "latencies" in found.reason


def test_a_failed_run_needs_no_samples(tmp_path):
    swept = recorded_sweep()
    failed = replace(swept.runs[0], verdict=Verdict.FAILED, metrics=(), budget=(), conditions=None)
    write_bundle(packed(runs=(failed, *swept.runs[1:])), tmp_path / "failed.zip")
    with open_bundle(tmp_path / "failed.zip") as bundle:
        assert all(one.reproduced for one in verify(bundle))


def test_a_sweep_without_figures_is_not_packed(tmp_path):
    runs = tuple(replace(run, metrics=()) for run in recorded_sweep().runs)
    with pytest.raises(PowerlabError, match="nothing to pack"):
        write_bundle(packed(runs=runs), tmp_path / "empty.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_bundle_that_was_there(made, tmp_path, monkeypatch):
    path = tmp_path / "sweep.zip"
    shutil.copy(made, path)

    def full(_: ArchiveWriter, __: str, ___: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ArchiveWriter, "add", full)
    with pytest.raises(PowerlabError, match="No space left"):
        write_bundle(packed(), path)
    assert [one.name for one in tmp_path.iterdir()] == ["sweep.zip"]
    assert path.read_bytes() == made.read_bytes()


def with_model(path: Path, **options: bool) -> None:
    """Pack a sweep of a model file that lies beside the bundle."""
    model = path.with_name("net.onnx")
    model.write_bytes(b"the bytes of a model")
    plan = replace(recorded_sweep().plan, models=(str(model),))
    write_bundle(packed(plan=plan), path, **options)


def test_a_small_model_travels_with_the_bundle(tmp_path):
    with_model(tmp_path / "sweep.zip")
    with open_bundle(tmp_path / "sweep.zip") as bundle:
        (model,) = bundle.manifest.models
        folder = tmp_path / "unpacked"
        folder.mkdir()
        (file,) = bundle.unpack_models(folder).values()
    assert Path(file).read_bytes() == b"the bytes of a model"
    assert model.sha256 in file
    assert "may not be the one" in model.remark  # written after the sweep


def test_a_large_model_travels_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr("powerlab.bundles.environment.SMALL_BYTES", 3)
    for asked in (False, True):
        with_model(tmp_path / "sweep.zip", with_model=asked)
        with open_bundle(tmp_path / "sweep.zip") as bundle:
            assert bool(bundle.manifest.models[0].member) is asked
            assert len(bundle.manifest.models[0].sha256) == 64


def in_another_sweep(speed: float = 1.0) -> tuple[Run, ...]:
    return recorded_sweep("5eed0000-0000-4000-8000-000000000002", speed).runs


def test_a_sweep_agrees_with_itself_measured_again():
    found = repeated(recorded_sweep().runs, in_another_sweep(), one_device=True)
    assert {one.agreement for one in found} == {Agreement.AGREES}
    assert len({one.match.one.point for one in found}) == 2


def test_a_faster_device_differs():
    found = repeated(recorded_sweep().runs, in_another_sweep(1.5), one_device=False)
    by_metric = {one.match.metric: one.agreement for one in found}
    assert by_metric["throughput_img_per_s"] is Agreement.DIFFERS
    assert by_metric["idle_power_w"] is Agreement.AGREES


def test_what_is_not_the_same_is_said():
    then = device()
    now = replace(then, cpu_model="Another processor")
    runs = recorded_sweep().runs
    assert list(changes(then, then, runs, runs)) == []
    assert list(changes(then, now, runs, runs)) == [f"Processor: {then.cpu_model}, now Another processor."]


def test_a_results_file_is_sent_to_where_the_samples_are(tmp_path, capsys):
    path = tmp_path / "sweep.ndjson"
    path.write_text("{}")
    assert cli.main(["bundle", "create", str(path)]) == cli.EXIT_USAGE
    assert "no samples" in capsys.readouterr().err
