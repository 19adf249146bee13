"""``powerlab serve`` with numbers that mean nothing: one sentence, exit code 2, and no database is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.cli import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *(
            (["--lease-s", value], f"--lease-s {value} is not a valid lease")
            for value in ("0", "0.5", "-5", "3601", "nan", "inf")
        ),
        (["--lease-s", "soon"], "--lease-s: 'soon' is not a number"),
        (["--lease-s"], "--lease-s: expected one argument"),
        (["--max-model-mb", "0"], "--max-model-mb 0 would reject every model"),
        (["--max-model-mb", "-1"], "--max-model-mb -1 would reject every model"),
        (["--max-model-mb", "1.5"], "--max-model-mb: '1.5' is not an integer"),
        (["--port", "-1"], "port -1 of 127.0.0.1 cannot be used (a port is a number from 0 to 65535)"),
        (["--port", "http"], "--port: 'http' is not an integer"),
    ],
)
def test_a_number_that_means_nothing(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    assert main(["serve", "--database", str(tmp_path / "served.db"), *words]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)
    assert err.rstrip().endswith(".")
    if "--port" not in words or "http" in words:  # the port is asked for when the database is open
        assert list(tmp_path.iterdir()) == []
