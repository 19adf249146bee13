"""How a plan names a model that lies on a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import StoredModelName, check_name, short, stored_model

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(NAMES, DIGESTS)
def test_what_is_written_is_read(name: str, sha256: str) -> None:
    named = StoredModelName(name=name, sha256=sha256)
    assert stored_model(str(named)) == named
    assert short(str(named)) == f"{name}@{sha256[:12]}"
    check_name(name)


@pytest.mark.parametrize("word", ["resnet50", "resnet50@256", "net.onnx", "./a@sha256:b.onnx", "/m/x.onnx", ""])
def test_other_words_are_left_to_others(word: str) -> None:
    assert stored_model(word) is None
    assert short(word) == word


@pytest.mark.parametrize(
    "word",
    [
        "sha256:" + "a" * 64,
        "net@sha256:",
        "net@sha256:" + "a" * 63,
        "net@sha256:" + "A" * 64,
        "net@sha256:" + "a" * 65,
        "net@sha256:" + "a" * 64 + "\n",
        "@sha256:" + "a" * 64,
        "a b@sha256:" + "a" * 64,
    ],
)
def test_a_digest_in_another_form_is_refused(word: str) -> None:
    with pytest.raises(PowerlabError, match="write NAME@sha256: and its 64"):
        stored_model(word)


@pytest.mark.parametrize("name", ["", "-net", "a/b", "a b", "ä", "x" * 101, "net\n"])
def test_names_that_would_not_be_read_again_are_refused(name: str) -> None:
    with pytest.raises(PowerlabError, match="is not a name for a model"):
        check_name(name)
