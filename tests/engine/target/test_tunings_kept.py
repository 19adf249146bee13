"""The file of measured choices: kept whole, found again in the same place only, and set aside where it is damaged."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.tiers import choose_tier
from powerlab.engine.tuning.kept import (
    FILE_NAME,
    Place,
    Tuned,
    Tunings,
    has_tunings,
    keep_tunings,
    read_tunings,
    this_place,
    tuning_file,
    with_tuned,
)

HERE = Place(processor="one", clock_limits_khz=(2_000_000,), tier="avx2", kernels="abc")
SHAPE = ConvShape(images=1, inputs=64, outputs=64, kernel=(3, 3), pads=(1, 1), in_size=(56, 56), size=(56, 56))
CUT = Choice(algorithm="direct", tile_blocks=4, tile_pixels=6, chunk_blocks=2, chunk_tiles=100)
FOUND = Tuned(shape=SHAPE, algorithm="direct", cuts={1: CUT, 2: replace(CUT, channel_split=2)})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / FILE_NAME


def test_what_was_kept_is_found_again(path):
    tunings = Tunings(place=HERE, shapes=(FOUND,))
    keep_tunings(tunings, path)
    assert read_tunings(HERE, path) == tunings
    assert [file.name for file in path.parent.iterdir()] == [FILE_NAME]


def test_without_a_file_nothing_is_known(path):
    assert read_tunings(HERE, path) == Tunings(place=HERE)


@pytest.mark.parametrize(
    "change", [{"processor": "two"}, {"clock_limits_khz": ()}, {"tier": "avx512"}, {"kernels": "def"}]
)
def test_other_places_have_tunings_of_their_own(path, change):
    keep_tunings(Tunings(place=HERE, shapes=(FOUND,)), path)
    other = replace(HERE, **change)
    assert read_tunings(other, path).shapes == ()
    keep_tunings(Tunings(place=other), path)
    assert read_tunings(HERE, path).shapes == (FOUND,)


def test_cuts_for_other_threads_stay_while_the_algorithm_does():
    first = with_tuned(Tunings(place=HERE), Tuned(shape=SHAPE, algorithm="direct", cuts={1: CUT}))
    second = with_tuned(first, Tuned(shape=SHAPE, algorithm="direct", cuts={2: CUT}))
    assert second.by_shape()[SHAPE].cuts == {1: CUT, 2: CUT}
    winograd = replace(CUT, algorithm="winograd2")
    third = with_tuned(second, Tuned(shape=SHAPE, algorithm="winograd2", cuts={2: winograd}))
    assert third.by_shape()[SHAPE].cuts == {2: winograd}
    assert len(third.shapes) == 1


def edited(path, change) -> None:
    keep_tunings(Tunings(place=HERE, shapes=(FOUND,)), path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


DAMAGE = {
    "no json": lambda path: path.write_text("{"),
    "empty": lambda path: path.write_bytes(b""),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "a list": lambda path: path.write_text("[]"),
    "later version": lambda path: edited(path, lambda document: document.update(version=99)),
    "wrong type": lambda path: edited(path, lambda document: document.update(places=3)),
    "half a shape": lambda path: edited(path, lambda document: document["places"][0]["shapes"][0].pop("shape")),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("use", [read_tunings, lambda place, path: keep_tunings(Tunings(place=place), path)])
def test_a_damaged_file_is_one_sentence_and_set_aside(path, name, use):
    path.parent.mkdir()
    DAMAGE[name](path)
    content = path.read_bytes()
    with pytest.raises(PowerlabError) as caught:
        use(HERE, path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith("try again, or make a new one with `powerlab engine tune`.")
    assert not path.exists()
    assert path.with_name(f"{FILE_NAME}.damaged").read_bytes() == content
    assert read_tunings(HERE, path).shapes == ()


@settings(deadline=None)
@given(st.binary(max_size=80) | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_any_content_is_understood_or_set_aside(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / FILE_NAME
    path.write_bytes(content)
    try:
        assert read_tunings(HERE, path).place == HERE
    except PowerlabError:
        assert not path.exists()


def test_a_file_that_cannot_be_read_stays(path):
    path.mkdir(parents=True)
    with pytest.raises(PowerlabError, match="cannot be read"):
        read_tunings(HERE, path)
    assert path.is_dir()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerlabError, match=r"(cannot be written|cannot be read).*(POWERLAB_STATE_DIR|permissions)"):
        keep_tunings(Tunings(place=HERE), tmp_path / "file" / FILE_NAME)


def test_a_failed_write_leaves_what_was_there(path, monkeypatch):
    keep_tunings(Tunings(place=HERE, shapes=(FOUND,)), path)

    def fail(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(PowerlabError, match="No space left on device"):
        keep_tunings(Tunings(place=HERE), path)
    assert read_tunings(HERE, path).shapes == (FOUND,)
    assert [file.name for file in path.parent.iterdir()] == [FILE_NAME]


def test_the_file_lies_in_the_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    assert not has_tunings()
    assert tuning_file() == tmp_path / FILE_NAME
    keep_tunings(Tunings(place=HERE))
    assert has_tunings()


def test_the_place_names_processor_and_kernels():
    tier = choose_tier()
    place = this_place(tier)
    assert place == this_place(tier)
    assert place.processor
    assert place.tier == tier.name
    assert len(place.kernels) == 16
