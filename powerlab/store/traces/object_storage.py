"""A folder of immutable objects: on a disk, or in S3-compatible storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from pyarrow import fs  # type: ignore[import-untyped]

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError
from powerlab.store.errors import UnavailableError

_OPTIONS = {"endpoint", "region"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An object that is there: its key, its size, and when it was written."""

    key: str
    size_bytes: int
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Objects by key, a path with slashes below the root.

    Attributes:
        address: where they lie, for people.
        filesystem: pyarrow's way to them.
        root: the folder's absolute path, or bucket and prefix.
        url: the same as other programs read it over HTTP; None for a folder.
    """

    address: str
    filesystem: fs.FileSystem
    root: str
    url: str | None

    def path(self, key: str) -> str:
        """Return an object's path in the file system."""
        return f"{self.root}/{key}"

    def put(self, key: str, content: bytes) -> None:
        """Write a new object.

        Raises:
            UnavailableError: it cannot be written; nothing, or at most a temporary file, is left of it.
        """
        try:
            if self.url is None:
                write_whole(Path(self.path(key)), content)
            else:
                # An object is seen when its upload is complete, not before.
                with self.filesystem.open_output_stream(self.path(key)) as stream:
                    stream.write(content)
        except OSError as error:
            raise self._unavailable(error) from error

    def get(self, key: str) -> bytes | None:
        """Return an object's content; None where there is no such object.

        Raises:
            UnavailableError: the storage cannot be reached.
        """
        try:
            with self.filesystem.open_input_file(self.path(key)) as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(error) from error

    def folders(self, folder: str = "") -> list[str]:
        """Return the folders right below one."""
        entries = self._entries(folder, recursive=False)
        return [
            str(entry.path).removeprefix(f"{self.root}/") for entry in entries if entry.type == fs.FileType.Directory
        ]

    def list(self, folder: str = "") -> Iterator[Found]:
        """Yield every object below a folder, by key; none where there is no such folder."""
        for entry in sorted(self._entries(folder, recursive=True), key=lambda entry: str(entry.path)):
            if entry.type == fs.FileType.File:
                yield Found(
                    key=entry.path.removeprefix(f"{self.root}/"),
                    size_bytes=entry.size,
                    written_at=entry.mtime.astimezone(UTC),
                )

    def delete(self, keys: Iterable[str]) -> int:
        """Delete objects and return how many; one that is gone already is none."""
        count = 0
        for key in keys:
            try:
                self.filesystem.delete_file(self.path(key))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._unavailable(error) from error
            count += 1
        return count

    def remove_folder(self, folder: str) -> None:
        """Remove a folder from a disk with whatever lies there; object storage knows no folders."""
        if self.url is not None:
            return
        try:
            self.filesystem.delete_dir(self.path(folder))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unavailable(error) from error

    def _entries(self, folder: str, *, recursive: bool) -> Iterable[fs.FileInfo]:
        selector = fs.FileSelector(self.path(folder).rstrip("/"), allow_not_found=True, recursive=recursive)
        try:
            entries: Iterable[fs.FileInfo] = self.filesystem.get_file_info(selector)
        except OSError as error:
            raise self._unavailable(error) from error
        return entries

    def _unavailable(self, error: OSError) -> UnavailableError:
        reason = " ".join(str(error).split())
        return UnavailableError(f"traces at {self.address} cannot be reached now ({reason}); try again later.")


def open_objects(address: str) -> Objects:
    """Return the objects at ``file:///folder``, made where it is missing, or ``s3://bucket/prefix?endpoint=URL``.

    Credentials for S3 come from where Amazon's own programs look for them: AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, ``~/.aws/credentials``, or the machine's role.

    Raises:
        PowerlabError: the address is no such thing, or the folder cannot be made.
    """
    parts = urlsplit(address)
    if parts.scheme == "file":
        return _folder(address, Path(unquote(parts.path)))
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if not parts.hostname or parts.netloc != parts.hostname or not set(options) <= _OPTIONS:
        raise PowerlabError(
            f"{address!r} is not a place for traces; write s3://BUCKET/PREFIX, and ?endpoint=https://HOST:PORT or "
            "&region=NAME where it is not Amazon's; keys belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    endpoint = urlsplit(options.get("endpoint") or "https://s3.amazonaws.com")
    if endpoint.scheme not in {"http", "https"} or not endpoint.netloc or endpoint.username is not None:
        raise PowerlabError(f"the endpoint of {address!r} is not an address; write endpoint=https://HOST:PORT.")
    filesystem = fs.S3FileSystem(
        endpoint_override=endpoint.netloc if "endpoint" in options else None,
        scheme=endpoint.scheme,
        region=options.get("region") or "us-east-1",
        connect_timeout=5,
        request_timeout=30,
    )
    root = f"{parts.hostname}{parts.path}".rstrip("/")
    return Objects(
        address=f"s3://{root}", filesystem=filesystem, root=root, url=f"{endpoint.scheme}://{endpoint.netloc}/{root}"
    )


def _folder(address: str, folder: Path) -> Objects:
    if not folder.is_absolute() or urlsplit(address).netloc:
        raise PowerlabError(f"{address!r} is not a folder; write file:///PATH with three slashes, from the root on.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PowerlabError(
            f"cannot store traces in {folder} ({error.strerror}); choose a folder that you may write to."
        ) from error
    return Objects(address=str(folder), filesystem=fs.LocalFileSystem(), root=str(folder).rstrip("/"), url=None)
