"""Where a table is: a folder of this machine, or a URI in an object store, with the options of that store.

    /srv/pipeline, file:///srv/pipeline        a folder
    s3://BUCKET/PATH                           S3, or what speaks its protocol; s3a:// is the same
    az://CONTAINER/PATH, abfss://...           Azure
    gs://BUCKET/PATH                           Google Cloud Storage

The options are those that delta-rs and polars call storage options, such as ``aws_region``. Those of the environment
count, too, and travel with a place to the tasks of Spark, as Spark does it for its own file systems. Options never
appear in the text of a place, nor in an error.
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from trouter.records.text import escaped

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa
    from pyarrow.fs import FileSystem
    from pyarrow.parquet import FileMetaData

#: The variables of the environment that are options, by the scheme of a URI.
SCHEMES: Final[Mapping[str, str]] = {
    "s3": "AWS_",
    "s3a": "AWS_",
    "az": "AZURE_",
    "abfs": "AZURE_",
    "abfss": "AZURE_",
    "gs": "GOOGLE_",
}
#: S3 writes a version only if there is none of its number, so that of two writers one is refused.
_DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {"AWS_": {"aws_conditional_put": "etag"}}
#: Options with which two writers overwrite each other's versions.
_UNSAFE: Final = ("aws_s3_allow_unsafe_rename", "allow_unsafe_rename")
#: Parts of the names of options whose values are not shown.
_SECRET: Final = re.compile(r"secret|password|token|key|credential|sas|signature", re.IGNORECASE)
#: Bytes that are asked of a store at least, so that the columns of a small file are not asked for one by one, and those
#: of a part when a whole file is copied.
_LEAST: Final = 1 << 20
_PART: Final = 8 << 20
#: Longest text of a store that an error repeats.
_MAX_TEXT: Final = 300
#: What stores say, and what is to be done.
_CURES: Final = (
    (
        "nosuchbucket|no such bucket|bucket does not exist|containernotfound|container does not exist",
        "there is no such bucket: create it, or correct the URI",
    ),
    (
        (
            r"invalidaccesskeyid|necessary privileges|signaturedoesnotmatch|access ?denied|authenticationfailed"
            r"|authorizationfailure|\b40[13]\b|permission|unauthori[sz]ed|invalidtoken|expiredtoken|credential"
            r"|failed to get .*token"
        ),
        "access is denied: correct the storage options with the credentials, or let their owner read and write here",
    ),
    (r"not allowed.*https?|https? .*not allowed|scheme is not allowed", "give the storage option aws_allow_http=true"),
    (
        r"\b50\d\b|slowdown|timed? ?out|connect|retries|dns|error sending request",
        (
            "the store does not answer as it should: run the command again once it does; what was committed is there, "
            "and nothing else can be seen"
        ),
    ),
)


class BadPlace(ValueError):
    """A text is no place of tables, or its options cannot be used."""


class Unreached(OSError):
    """An object store refused, or did not answer; the text has the cure."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or file: ``path`` below ``root``, which is a folder of this machine or a URI."""

    root: str
    path: str = ""
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, where: Where, options: Mapping[str, str] | None = None) -> Place:
        """Return the place of a path or URI, with these options beside those of the environment; BadPlace."""
        if isinstance(where, Place):
            return where
        text = os.fspath(where)
        if "://" not in text:
            return cls(text)
        uri = urlsplit(text)
        if uri.scheme == "file":
            if uri.netloc not in {"", "localhost"}:
                raise BadPlace(f"{uri.scheme}://{uri.netloc}: a file is on this machine: write file:///PATH")
            return cls(unquote(uri.path))
        if uri.scheme not in SCHEMES:
            raise BadPlace(f"{uri.scheme}:// is no place for tables: give a folder, or {', '.join(SCHEMES)} or file")
        if uri.query or uri.fragment or uri.password is not None or (uri.username and not _is_abfs(uri.scheme)):
            raise BadPlace(f"{uri.scheme}://...: a URI is shown and logged: give credentials by storage options")
        if not uri.netloc:
            raise BadPlace(f"{text}: write {uri.scheme}://BUCKET/PATH")
        return cls(text.rstrip("/"), "", _options(uri.scheme, options or {}))

    @property
    def is_local(self) -> bool:
        """Whether this is a folder or file of this machine."""
        return "://" not in self.root

    @property
    def name(self) -> str:
        """The last part of the path."""
        return str(self).rpartition("/")[2]

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options as `deltalake` takes them."""
        return None if self.is_local else dict(self.options)

    def __truediv__(self, path: str) -> Place:
        return replace(self, path=f"{self.path}/{path}" if self.path else path)

    def __str__(self) -> str:
        return os.path.join(self.root, self.path) if self.path else self.root  # noqa: PTH118 - of URIs as well

    def __fspath__(self) -> str:
        """Return the path on this machine; Unreached for a URI, which no program can open as a file."""
        if self.is_local:
            return str(self)
        raise Unreached(errno.ENOTSUP, "this must be a folder of this machine", str(self))

    def absolute(self) -> Place:
        """Return the same place, whatever the working folder is."""
        return replace(self, root=str(Path(self.root).absolute())) if self.is_local else self

    # --- what is there

    @property
    def _arrow(self) -> FileSystem:
        """The file system of Arrow below a URI, which is in Python.

        Only the calling thread may read with it (see `Parquet`), so it is not for Arrow's data sets.
        """
        return _opened(self.root, self.options)

    @property
    def _key(self) -> str:
        """The name in ``_arrow``, or the path on this machine."""
        return str(self) if self.is_local else self.path

    def read_bytes(self) -> bytes:
        """Return the contents of a file; FileNotFoundError, OSError."""
        if self.is_local:
            return Path(self).read_bytes()
        with self.reached(), self._arrow.open_input_stream(self._key) as file:
            return bytes(file.read())

    def write_bytes(self, octets: bytes) -> None:
        """Write a file, whole or not at all in an object store; OSError."""
        if self.is_local:
            Path(self).write_bytes(octets)
            return
        import pyarrow as pa  # noqa: PLC0415

        with (
            self.reached(),
            pa.BufferedOutputStream(self.output(), 1 << 20) as file,
        ):  # which takes bytes and passes bytes
            file.write(octets)

    def copy(self, path: Path) -> None:
        """Copy a file of an object store to this machine, in parts; FileNotFoundError, OSError."""
        with path.open("wb") as copied:
            for part in self._parts():
                copied.write(part)

    def _parts(self) -> Iterator[bytes]:
        with self.reached(), self._arrow.open_input_stream(self._key) as file:
            while part := file.read(_PART):
                yield part

    def parquet(self) -> Parquet:
        """Return a Parquet file, open for a block; FileNotFoundError, OSError."""
        return Parquet(self)

    def input(self) -> Any:
        """Return what Arrow reads a file by, from any place in it; FileNotFoundError, OSError."""
        return self._key if self.is_local else io.BufferedReader(self._arrow.open_input_file(self._key), _LEAST)

    def output(self) -> Any:
        """Return a stream of Arrow that writes a file, which is complete once it is closed; OSError."""
        import pyarrow as pa  # noqa: PLC0415

        return pa.OSFile(self._key, "wb") if self.is_local else self._arrow.open_output_stream(self._key)

    def folders(self) -> list[Place]:
        """Return the folders in this one, sorted; none if it does not exist. OSError."""
        if self.is_local:
            return [self / path.name for path in sorted(Path(self).glob("*"))]
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415

        with self.reached():
            found = self._arrow.get_file_info(FileSelector(self._key, allow_not_found=True))
        return [self / each.base_name for each in found if each.type == FileType.Directory]

    def files(self, suffix: str) -> list[tuple[Place, float]]:
        """Return the files in this folder whose names end so, and when they were written (seconds since 1970); OSError.

        None if it does not exist, and without files that are deleted meanwhile.
        """
        if self.is_local:
            return [
                (self / entry.name, changed)
                for entry in _entries(str(self))
                if entry.name.endswith(suffix) and (changed := _changed_s(entry)) is not None
            ]
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415

        with self.reached():
            found = self._arrow.get_file_info(FileSelector(self._key, allow_not_found=True))
        return [
            (self / each.base_name, each.mtime_ns / 1e9)
            for each in found
            if each.type == FileType.File and each.base_name.endswith(suffix)
        ]

    def delete(self) -> None:
        """Delete a file; OSError."""
        if self.is_local:
            Path(self).unlink()
            return
        with self.reached():
            self._arrow.delete_file(self._key)

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Raise what the object store says as FileNotFoundError or Unreached, in plain words and without secrets."""
        try:
            yield
        except Unreached:
            raise
        except OSError as error:
            if self.is_local:
                raise
            raise self.failure(error) from None

    def failure(self, error: Exception) -> OSError:
        """Return an error of the object store in plain words."""
        said = _plain(str(error), self.options)
        for pattern, cure in _CURES:
            if re.search(pattern, said, re.IGNORECASE):
                return Unreached(errno.EIO, f"{cure} ({said})", str(self))
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, "there is no such object", str(self))
        return Unreached(errno.EIO, said, str(self))


class Parquet:
    """A Parquet file that is open until the end of a block.

    A file of an object store is a Python object. A thread of Arrow that reads it lets go of it some time after it has
    handed over the rows, and waits for Python then: if Python is ending, the thread ends within code of C++ that may
    not fail, and takes the process with it (SIGABRT). So only the calling thread reads such a file.
    """

    def __init__(self, place: Place) -> None:
        """FileNotFoundError, OSError."""
        import pyarrow.parquet as pq  # noqa: PLC0415  # not where only texts are asked for

        self._place = place
        self._has_threads = place.is_local
        with place.reached():
            self._file = pq.ParquetFile(place.input(), pre_buffer=self._has_threads, coerce_int96_timestamp_unit="us")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close(force=True)

    @property
    def metadata(self) -> FileMetaData:
        """What the footer says of row groups and their columns."""
        return self._file.metadata

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._file.schema_arrow.names)

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Return all rows, with all or these columns; OSError, ArrowException."""
        with self._place.reached():
            return self._file.read(columns, use_threads=self._has_threads)

    def read_group(self, number: int) -> pa.Table:
        """Return the rows of one row group; OSError, ArrowException."""
        with self._place.reached():
            return self._file.read_row_group(number, use_threads=self._has_threads)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, with these columns; OSError, ArrowException."""
        with self._place.reached():
            yield from self._file.iter_batches(columns=columns, use_threads=self._has_threads)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _changed_s(entry: os.DirEntry[str]) -> float | None:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return None


#: What a function takes that wants a place.
Where: TypeAlias = "Place | str | os.PathLike[str]"


def _is_abfs(scheme: str) -> bool:
    """Return whether the container stands before an `@` in URIs of this scheme."""
    return scheme.startswith("abfs")


def _options(scheme: str, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the options for a scheme: ours, those of the environment, and those that were given; BadPlace."""
    prefix = SCHEMES[scheme]
    environment = {name.lower(): value for name, value in os.environ.items() if name.startswith(prefix)}
    options = {**_DEFAULTS.get(prefix, {}), **environment, **{name.lower(): value for name, value in given.items()}}
    for name in _UNSAFE:
        if options.get(name, "").lower() in {"1", "true", "yes", "on", "y"}:
            raise BadPlace(f"storage option {name}: two writers would overwrite each other's versions; leave it out")
    return tuple(sorted(options.items()))


@lru_cache(maxsize=64)
def _opened(root: str, options: tuple[tuple[str, str], ...]) -> FileSystem:
    """Return the file system below a URI."""
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415  # not where tables are folders
    from pyarrow.fs import PyFileSystem  # noqa: PLC0415

    handler: Any = DeltaStorageHandler(root, dict(options))
    return PyFileSystem(handler)


def _plain(said: str, options: tuple[tuple[str, str], ...]) -> str:
    """Return what a store said: on one line, bounded, and without secrets."""
    said = re.sub(r"\x1b\[[0-9;]*m|↳|<(RequestId|HostId|AWSAccessKeyId)>.*?</\1>|<\?xml[^>]*>", " ", said)
    said = re.sub(r"Error performing (\w+) \S+ in \S+|Kernel error ->|Generic \w+ error", r"\1", said)
    said = re.sub(r"(after \d+ retries),\s+max_retries:?\s+\d+,\s+retry_timeout:?\s+\S+", r"\1", said)
    said = re.sub(r"(https?://[^\s?]*)\?\S*", r"\1", said)
    for name, value in options:
        if len(value) > 2 and _SECRET.search(name):
            said = said.replace(value, "***")
    return escaped(" ".join(re.sub(r"</?\w+>", " ", said).split()).lstrip(": ")[:_MAX_TEXT])
