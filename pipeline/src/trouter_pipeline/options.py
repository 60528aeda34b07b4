"""The options of ``spark.read.format("amqp")`` and of the writers and streams: the fields of ``Options``.

Spark passes every option as text, in any case of letters. Secret options have names that make Spark redact them in
plans (`password`, `token`, `secret`, `url`), and each secret may be in a file instead, of which Spark knows only the
path. An unknown option is refused, because a misspelt `failOnDataLoss` would protect nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import Enum, Flag
from pathlib import Path
from typing import Any, Final, NamedTuple

from trouter_pipeline.flight.access import address_of, is_secure, is_served
from trouter_pipeline.spool.cursors import DEFAULT, check_name

MIB: Final = 1 << 20
#: No file with a secret is longer.
MAX_SECRET_BYTES: Final = 4096
#: Spark's own options, which it passes with ours.
_SPARKS: Final = frozenset(("checkpointlocation",))
_YES: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class BadOption(ValueError):
    """An unknown option, or an impossible value; the text names it and the cure."""


class Side(Flag):
    """Where an option has an effect."""

    READ = 1
    WRITE = 2
    BOTH = READ | WRITE


class Mode(Enum):
    """The treatment of a message that cannot be decoded."""

    #: A row with its bytes in `raw` and the reason in `error`.
    PERMISSIVE = "PERMISSIVE"
    #: The query fails, and fails there again until the operator decides.
    FAILFAST = "FAILFAST"
    #: The row goes to a file under `deadLetterPath`, and the query continues.
    DEADLETTER = "DEADLETTER"


class Receiver(Enum):
    """The process that receives the messages."""

    #: A thread of the query.
    EMBEDDED = "embedded"
    #: Another process, such as `trouter pipeline spool`; spools are only read.
    NONE = "none"


class OnReject(Enum):
    """The treatment of a row that the peer rejects."""

    FAIL = "fail"
    DEADLETTER = "deadletter"


class Row(NamedTuple):
    """The facts of one option. ``low`` and ``high`` bound a number, ends included."""

    side: Side
    text: str
    parse: Callable[[str], Any]
    shown: str
    low: float
    high: float
    secret: bool


def _boolean(text: str) -> bool:
    if text.lower() not in _YES:
        raise ValueError("is neither true nor false")
    return _YES[text.lower()]


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is no whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is no number") from None


def _several(text: str) -> tuple[str, ...]:
    return tuple(part for piece in text.split(",") if (part := piece.strip()))


def _one_of(kind: type[Enum]) -> Callable[[str], Enum]:
    names = {str(member.value).lower(): member for member in kind}

    def parse(text: str) -> Enum:
        if text.lower() not in names:
            raise ValueError(f"is none of {', '.join(str(member.value) for member in kind)}")
        return names[text.lower()]

    return parse


#: Parser and name in the manual by the type of the default.
_KINDS: Final[dict[type, tuple[Callable[[str], Any], str]]] = {
    bool: (_boolean, "boolean"),
    int: (_integer, "integer"),
    float: (_number, "number"),
    str: (str, "text"),
    tuple: (_several, "list"),
    **{kind: (_one_of(kind), " / ".join(str(m.value) for m in kind)) for kind in (Mode, Receiver, OnReject)},
}


def _option(default: Any, side: Side, text: str, *, low: float = 0, high: float = 0, secret: bool = False) -> Any:
    parse, shown = _KINDS[type(default)]
    return field(default=default, repr=not secret, metadata={"row": Row(side, text, parse, shown, low, high, secret)})


_READ: Final = Side.READ
_WRITE: Final = Side.WRITE
_BOTH: Final = Side.BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options of the source and the sink; an option has the name of its field in camelCase."""

    # The server, and the login.
    url: tuple[str, ...] = _option(
        (),
        _BOTH,
        "`amqp[s]://[user[:password]@]host[:port]`; several, in order of preference, with commas",
        secret=True,
    )
    address: str = _option("", _BOTH, "the address to receive from, or to send rows to that have no `to`")
    virtual_host: str = _option("", _BOTH, "the virtual host to ask for, by default the host of the URL")
    user: str = _option("", _BOTH, "the user to log in as; it overrides the URL's")
    password: str = _option("", _BOTH, "the password; better in a file", secret=True)
    password_file: str = _option("", _BOTH, "a file that holds the password")
    sasl_mechanisms: tuple[str, ...] = _option(
        (),
        _BOTH,
        "the mechanisms allowed; by default SCRAM or PLAIN for a user, EXTERNAL for a certificate, else ANONYMOUS",
    )
    tls_trust_file: str = _option(
        "", _BOTH, "authorities to trust (PEM), by default the system's; implies TLS, as `amqps` does"
    )
    tls_certificate_file: str = _option(
        "", _BOTH, "the client certificate (PEM); for a spool of a server each worker reads its own, at this place"
    )
    tls_key_file: str = _option("", _BOTH, "its key, by default in the certificate's file")
    tls_key_password: str = _option("", _BOTH, "the key's password; better in a file", secret=True)
    tls_key_password_file: str = _option("", _BOTH, "a file that holds the key's password")
    tls_verify_name: bool = _option(True, _BOTH, "whether the server's certificate must name its host")
    connect_timeout_s: float = _option(30.0, _BOTH, "the longest time for one attempt to connect", low=0.1, high=3600)
    heartbeat_s: float = _option(
        60.0, _BOTH, "the client gives up a server that is silent for this time", low=1, high=86400
    )

    # Receiving.
    spool: tuple[str, ...] = _option(
        (),
        _READ,
        "required: the folder of the spool, a folder of such folders (its shards), "
        "or `grpc+tls://host:port/name` of [a server of spools](spool.md#without-a-shared-folder); several with commas",
    )
    receiver: Receiver = _option(  # noqa: RUF009 - a dataclass field
        Receiver.EMBEDDED, _READ, "`none` reads what `trouter pipeline spool` receives"
    )
    cursor: str = _option(
        DEFAULT, _READ, "the name of this consumer's [cursor](spool.md#several-consumers), for `receiver=none`"
    )
    token: str = _option("", _READ, "the token for a server of spools; better in a file", secret=True)
    token_file: str = _option("", _READ, "a file that holds the token, on the driver only")
    credit: int = _option(2000, _READ, "the most messages under way; as many may come twice", low=1, high=1_000_000)
    linger_ms: int = _option(
        5, _READ, "how long a message waits for others before the receiver syncs it", low=0, high=60000
    )
    max_group_bytes: int = _option(MIB, _READ, "the receiver syncs as many bytes without waiting", low=1, high=1 << 30)
    max_message_bytes: int = _option(
        64 * MIB,
        _READ,
        "the receiver rejects a longer message; if a spool has one all the same, the query fails",
        low=512,
        high=1 << 30,
    )
    segment_bytes: int = _option(16 * MIB, _READ, "the length of a file of the spool", low=4096, high=1 << 31)
    backlog_bytes: int = _option(
        1 << 30, _READ, "the receiver gives no more credit while as much is not consumed", low=1 << 16, high=1 << 50
    )
    lock_wait_s: float = _option(
        20.0, _READ, "how long to wait until the former process has released the spool", low=0, high=3600
    )

    # Reading.
    max_rows_per_batch: int = _option(0, _READ, "the most rows of one micro-batch, 0 for no limit", low=0, high=1 << 40)
    read_parallelism: int = _option(
        0,
        _READ,
        "tasks that share the rows of one shard in a batch; 0: one for every 50,000 messages, and at least two",
        low=0,
        high=4096,
    )
    mode: Mode = _option(  # noqa: RUF009 - a dataclass field
        Mode.PERMISSIVE, _READ, "what the source does with a message that it cannot decode"
    )
    dead_letter_path: str = _option(
        "", _READ, "the folder for the Parquet files of DEADLETTER; all workers must see it"
    )
    keep_messages: bool = _option(
        False, _READ, "the column `raw` has each encoded message, not only those that cannot be decoded"
    )
    fail_on_data_loss: bool = _option(True, _READ, "false: the log says which rows are missing, and reading goes on")
    max_messages: int = _option(
        100_000, _READ, "a batch read with a receiver of its own ends after so many messages", low=1, high=1 << 40
    )
    idle_timeout_ms: int = _option(
        3000,
        _READ,
        "it also ends when no message came for this time, as does the wait of `availableNow`",
        low=1,
        high=86_400_000,
    )
    min_rows: int = _option(
        0,
        _READ,
        "`availableNow` with a receiver of its own waits until so many messages are not consumed",
        low=0,
        high=1 << 40,
    )
    body_format: str = _option(
        "", _READ, "`json` or `avro`: the source reads the columns of the given schema from the body"
    )
    avro_schema_file: str = _option("", _READ, "the schema of the program that wrote the Avro bodies")

    # Sending.
    id_prefix: str = _option("", _WRITE, "the beginning of message ids for rows without one, by default the query's id")
    window: int = _option(500, _WRITE, "the most messages under way", low=1, high=100_000)
    settle_timeout_s: float = _option(
        60.0, _WRITE, "the query fails when no message was settled for this time", low=0.1, high=86400
    )
    on_reject: OnReject = _option(  # noqa: RUF009 - a dataclass field
        OnReject.FAIL, _WRITE, "`deadletter` sends a rejected row to `deadLetterAddress`"
    )
    dead_letter_address: str = _option("", _WRITE, "the address for rejected rows")

    @classmethod
    def parse(cls, given: Mapping[str, str], side: Side) -> Options:
        """Return the options in ``given``, keys in any case; raise BadOption for the first that is wrong."""
        table = {option_name(name).lower(): (name, row) for name, row in rows()}
        values: dict[str, Any] = {}
        for key, text in given.items():
            if key.lower() in _SPARKS:
                continue
            if key.lower() == "path":  # the argument of load("...") and save("...")
                raise BadOption("load and save take no path here: give the options url and address, or spool")
            name, row = table.get(key.lower()) or _unknown(key, side)
            if side not in row.side:
                raise BadOption(f"{option_name(name)} has no effect when {'writing' if side is _WRITE else 'reading'}")
            values[name] = _value(option_name(name), row, text)
        made = cls(**values)
        made._check(side)
        return made

    def _check(self, side: Side) -> None:
        """Verify what options require of each other; BadOption."""
        if side is Side.READ:
            self._check_reading()
        elif self.on_reject is OnReject.DEADLETTER and not self.dead_letter_address:
            raise BadOption("onReject=deadletter needs deadLetterAddress")
        if not self.url and (side is Side.WRITE or self.receiver is Receiver.EMBEDDED):
            raise BadOption("url is missing: give the server, as amqp://host:5672")
        for one in ("password", "token", "tls_key_password"):
            other = f"{one}_file"
            if getattr(self, one) and getattr(self, other):
                raise BadOption(f"{option_name(one)} and {option_name(other)} set the same: give one of them")
        if self.tls_key_file and not self.tls_certificate_file:
            raise BadOption("tlsKeyFile is of no use without tlsCertificateFile")

    def _check_reading(self) -> None:
        if not self.spool:
            raise BadOption("spool is missing: the folder where messages are kept until they were read")
        if self.receiver is Receiver.EMBEDDED:
            if any(map(is_served, self.spool)):
                raise BadOption("a spool of a server is filled by another process: use receiver=none")
            if len(self.spool) > 1:
                raise BadOption("an embedded receiver has one spool; with several, use receiver=none")
            if self.cursor != DEFAULT:
                raise BadOption("cursor is for receiver=none: an embedded receiver is the only consumer of its spool")
            if not self.address:
                raise BadOption("address is missing: what to receive from")
        for place in filter(is_served, self.spool):
            try:
                address_of(place)
            except ValueError as error:
                raise BadOption(f"spool: {error}") from None
            if not self.tls_verify_name:
                raise BadOption("tlsVerifyName=false is not for a spool of a server: its certificate names its host")
            if self.tls_certificate_file and not is_secure(place):
                raise BadOption(f"tlsCertificateFile is for TLS: write grpc+tls:// for {place}")
            if self.tls_key_password or self.tls_key_password_file:
                raise BadOption("tlsKeyPassword is not for a spool of a server: give tlsKeyFile without a password")
        try:
            check_name(self.cursor)
        except ValueError as error:
            raise BadOption(f"cursor: {error}") from None
        if self.mode is Mode.DEADLETTER and not self.dead_letter_path:
            raise BadOption("mode=DEADLETTER needs deadLetterPath")
        if self.body_format.lower() not in {"", "json", "avro"}:
            raise BadOption(f"bodyFormat is {self.body_format!r}, neither json nor avro")
        if self.avro_schema_file and self.body_format.lower() != "avro":
            raise BadOption("avroSchemaFile is for bodyFormat=avro")

    def secret(self, name: str) -> str:
        """Return the secret in option ``name`` or in its file; BadOption, which never contains it."""
        given: str = getattr(self, name)
        path: str = getattr(self, f"{name}_file")
        if not path:
            return given
        option = option_name(f"{name}_file")
        try:
            with Path(path).open("rb") as file:
                octets = file.read(MAX_SECRET_BYTES + 1)
        except OSError as error:
            raise BadOption(f"{option}: {path}: {error.strerror}") from None
        if len(octets) > MAX_SECRET_BYTES:
            raise BadOption(f"{option}: {path} holds more than {MAX_SECRET_BYTES} bytes: no password")
        try:
            return octets.decode().strip()
        except UnicodeDecodeError:
            raise BadOption(f"{option}: {path} is not UTF-8") from None


def rows() -> Iterator[tuple[str, Row]]:
    """Yield each field with its facts."""
    for each in fields(Options):
        yield each.name, each.metadata["row"]


def option_name(name: str) -> str:
    """Return the option of a field: `maxRowsPerBatch` for ``max_rows_per_batch``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def manual() -> str:
    """Return the table as Markdown, for the manual."""
    defaults = {each.name: each.default for each in fields(Options)}
    lines = ["| option | for | kind | default | meaning |", "|---|---|---|---|---|"]
    for name, row in rows():
        side = {Side.READ: "reading", Side.WRITE: "writing"}.get(row.side, "both")
        meaning = row.text.replace("|", "\\|")
        lines.append(f"| `{option_name(name)}` | {side} | {row.shown} | {_shown(defaults[name])} | {meaning} |")
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    if isinstance(default, Enum):
        return f"`{default.value}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`" if default not in {"", ()} else ""


def _unknown(key: str, side: Side) -> tuple[str, Row]:
    names = [option_name(name) for name, row in rows() if side in row.side]
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(key.lower(), by_lower, n=1, cutoff=0.5)
    hint = f", did you mean {by_lower[near[0]]}?" if near else ""
    raise BadOption(f"there is no option {key[:64]!r}{hint}")


def _value(option: str, row: Row, text: str) -> Any:
    """Return the value of ``text``; BadOption, which never contains a secret."""
    try:
        value = row.parse(text)
    except ValueError as error:
        shown = "" if row.secret else f" {text[:64]!r}"
        raise BadOption(f"{option}{shown} {error}") from None
    if row.high and not row.low <= value <= row.high:
        raise BadOption(f"{option} is {value}, outside {row.low} to {row.high}")
    return value
