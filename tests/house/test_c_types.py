"""The build writes the C types of compiled modules from their annotations, and names what has no type of C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from trouter._c_types import MARK, TypesError, texts
from trouter._compiling import Distribution

HEAD = """
from __future__ import annotations
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias
if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int
"""
Translate = Callable[..., str]


@pytest.fixture
def translate(tmp_path: Path) -> Translate:
    """Return a function that returns the types of ``hot``, among other sources of its package."""

    def types_of_hot(source: str, *compiled: str, freelists: dict[str, int] | None = None, **others: str) -> str:
        package = tmp_path / "package"
        package.mkdir()
        for name, text in {"hot": source, **others}.items():
            (package / f"{name}.py").write_text(HEAD + dedent(text))
        listed = {f"package.{name}": package / f"{name}.py" for name in ("hot", *compiled)}
        return texts(listed, package, [], freelists or {})[package / "hot.pxd"]

    return types_of_hot


def line_with(words: str, types: str) -> str:
    return next((line.strip() for line in types.splitlines() if words in line), "")


CURSOR = """
class Cursor:
    __slots__ = ("data", "_offset", "seen", "share_s", "tag", "owner")
    def __init__(self, data: bytes, share_s: float, owner: object) -> None:
        self.owner = owner
        self.share_s = share_s
        self.data = data
        self.tag = b""
        self._start(0)
    def _start(self, offset: Py_ssize_t) -> None:
        self.seen: bool = offset > 0
        self._offset = offset
    def read(self, count: Py_ssize_t, more: bool = False) -> bytes | None:
        end: Py_ssize_t = self._offset + count
        part: bytes = self.data[self._offset : end]
        return part if more else None
    def count(self) -> Py_ssize_t:
        return self._offset
    def is_at_end(self) -> bool:
        return False
"""


def test_a_class_with_slots_becomes_a_struct_in_their_order(translate: Translate) -> None:
    types = translate(CURSOR)
    fields = [line.strip() for line in types.splitlines() if line.startswith("    cdef ") and "(" not in line]
    assert fields == [
        "cdef public bytes data",
        "cdef Py_ssize_t _offset",
        "cdef public bint seen",
        "cdef public double share_s",
        "cdef public bytes tag",
        "cdef public object owner",
    ]


def test_methods_become_entries_of_c(translate: Translate) -> None:
    types = translate(CURSOR)
    assert "cdef int _start(self, Py_ssize_t offset) except -1" in types
    assert "cpdef bytes read(self, Py_ssize_t count, bint more=*)" in types
    assert "cpdef Py_ssize_t count(self) except? -1" in types
    assert "cpdef bint is_at_end(self) except -1" in types
    assert "__init__" not in types


def test_a_result_of_none_is_no_object_to_c_unless_python_can_see_it(translate: Translate) -> None:
    source = """
    class Cursor:
        __slots__ = ("at",)
        at: Py_ssize_t
        def start(self) -> None:
            self._start()
        def _start(self) -> None:
            self._pass_on()
        def _pass_on(self) -> None:
            if self.at:
                return
            self.start()
    """
    types = translate(source)
    assert "cpdef object start(self)" in types
    assert "cdef int _start(self) except -1" in types
    assert "cdef object _pass_on(self)" in types


def test_a_local_has_its_type_by_whatever_name_it_has(translate: Translate) -> None:
    assert "@cython.locals(finish=cython.Py_ssize_t, part=bytes)" in translate(CURSOR.replace("end", "finish"))


@pytest.mark.parametrize(
    "method",
    [
        "@property\n    def size(self) -> int:\n        return 1",
        "async def size(self) -> None:\n        pass",
        "def size(self) -> Any:\n        yield 1",
        "def size(self, *, wide: bool) -> int:\n        return 1",
        "def size(self, *values: int) -> int:\n        return 1",
        "def size(self) -> int:\n        return sum(each for each in (self, self))",
        "def size(self) -> Any:\n        return lambda: self",
        "def size(self) -> int:\n        return super().size()",
    ],
)
def test_what_c_cannot_have_stays_a_method_of_python(translate: Translate, method: str) -> None:
    types = translate(f'class Cursor:\n    __slots__ = ("at",)\n    {method}\n    at: Py_ssize_t\n')
    assert "cdef class Cursor" in types
    assert "size(" not in types


@pytest.mark.parametrize(
    "other",
    [
        {"hot": "def pass_on(cursor: Cursor) -> None:\n    cursor._start(1)"},
        {"hot": "def pass_on(cursor: Cursor) -> Any:\n    return cursor._start"},
        {"cold": "from .hot import Cursor\nclass Slow(Cursor):\n    def _start(self, offset: int) -> None: ..."},
        {"cold": "from .hot import Cursor\nclass Slow(Cursor):\n    def go(self) -> None:\n        self._start(1)"},
    ],
)
def test_a_method_with_an_underscore_is_of_c_only_where_its_class_alone_calls_it(
    translate: Translate, other: dict[str, str]
) -> None:
    assert "    cpdef object _start(" in translate(CURSOR + other.pop("hot", ""), **other)


def test_a_class_that_shares_only_the_name_of_a_method_does_not_count(translate: Translate) -> None:
    cold = "class Slow:\n    def _start(self) -> None: ...\n    def go(self) -> None:\n        self._start()"
    assert "    cdef int _start(" in translate(CURSOR, cold=cold)


def test_functions_with_an_underscore_are_of_c_only_if_they_are_called_and_not_passed(translate: Translate) -> None:
    source = """
    def read(at: Py_ssize_t) -> Py_ssize_t:
        return _skip(at)
    def _skip(at: Py_ssize_t) -> Py_ssize_t:
        return at
    def _passed(at: Py_ssize_t) -> Py_ssize_t:
        return at
    def _taken() -> None:
        pass
    TABLE = (_passed,)
    """
    types = translate(source, cold="from .hot import _taken")
    assert line_with("_skip", types).startswith("cdef ")
    assert line_with("_passed", types).startswith("cpdef ")
    assert line_with("_taken", types).startswith("cpdef ")


def test_classes_without_slots_exceptions_and_protocols_stay_python(translate: Translate) -> None:
    source = """
    from typing import Protocol
    class Plain:
        def run(self) -> None: ...
    class Wrong(Exception):
        __slots__ = ("at",)
    class Port(Protocol):
        __slots__ = ()
        def run(self) -> None: ...
    class Mark:
        __slots__ = ()
    """
    assert "class" not in translate(source)


def test_a_base_of_another_module_is_cimported(translate: Translate) -> None:
    base = "class Link:\n    __slots__ = ('at',)\n    at: Py_ssize_t\n    def read(self) -> None: ..."
    source = "from .base import Link\nclass Incoming(Link):\n    __slots__ = ()\n    def grant(self) -> None: ..."
    types = translate(source, "base", base=base)
    assert "from package.base cimport Link\n" in types
    assert "@cython.final\ncdef class Incoming(Link):" in types


def test_a_class_is_final_unless_it_is_extended_or_overrides_with_typed_names(translate: Translate) -> None:
    source = """
    class Link:
        __slots__ = ("at",)
        at: Py_ssize_t
        def read(self) -> None: ...
    class Incoming(Link):
        __slots__ = ()
        def read(self) -> None:
            at: Py_ssize_t = self.at
    class Outgoing(Link):
        __slots__ = ()
        def read(self) -> None: ...
        def write(self) -> None: ...
    """
    types = translate(source)
    assert "@cython.final\ncdef class Outgoing(Link):\n    cpdef object write(self)\n" in types, "as its base says"
    assert types.count("@cython.final") == 1


def test_constants_with_an_underscore_are_variables_of_c_unless_others_import_them(translate: Translate) -> None:
    source = """
    LIMIT: Final = 8
    _LIMIT: Final[Py_ssize_t] = LIMIT
    _KIND: Final[c_int] = 1
    _NAMES: Final[dict[str, int]] = {}
    _TAKEN: Final[Py_ssize_t] = 2
    _ANYTHING: Final[int] = 3
    """
    constants = [line for line in translate(source, cold="from .hot import _TAKEN").splitlines() if "cdef" in line]
    assert constants == ["cdef Py_ssize_t _LIMIT", "cdef int _KIND", "cdef dict _NAMES"]


def test_what_may_be_none_is_an_object_or_of_its_class(translate: Translate) -> None:
    source = "def read(data: bytes | None, more: bool | None, at: int | str, seen: list[int] | None) -> str | None: ..."
    assert "cpdef str read(bytes data, object more, object at, list seen)" in translate(source)


def test_types_in_the_words_of_c_may_have_names(translate: Translate) -> None:
    source = """
    if TYPE_CHECKING:
        _Ints: TypeAlias = Annotated[list[int], "int[::1]"]
    class Table:
        __slots__ = ("rows", "bounds")
        def __init__(self) -> None:
            self.rows: _Ints = [0]
            self.bounds: Annotated[list[float], "double[13]"] = [0.0] * 13
        def first(self) -> c_int:
            rows: _Ints = self.rows
            return rows[0]
    """
    types = translate(source)
    assert "cdef public int[::1] rows" in types
    assert "cdef double[13] bounds" in types, "Python would get a copy"
    assert '@cython.locals(rows="int[::1]")' in types


def test_names_of_the_code_are_cimported_and_those_of_other_annotations_are_not(translate: Translate) -> None:
    codec = """
    def skip(at: Py_ssize_t) -> Py_ssize_t: ...
    def decode(at: Py_ssize_t) -> object: ...
    UNUSED = 1
    """
    source = "from .codec import UNUSED, decode, skip\ndef read() -> Py_ssize_t:\n    return skip(UNUSED)"
    assert line_with("cimport skip", translate(source, "codec", codec=codec)) == "from package.codec cimport skip"


def test_a_class_that_no_type_names_stays_a_name_that_a_test_can_replace(translate: Translate) -> None:
    link = "class Link:\n    __slots__ = ('at',)\n    at: Py_ssize_t"
    assert "Link" not in translate(
        "from .link import Link\ndef make() -> object:\n    return Link()", "link", link=link
    )


def test_memory_is_kept_for_deleted_objects_of_named_classes(translate: Translate) -> None:
    types = translate(CURSOR, freelists={"package.hot.Cursor": 16})
    assert "@cython.freelist(16)\n@cython.final\ncdef class Cursor:" in types


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        ("def read(at: Py_ssize_t | None) -> None: ...", 7, "cannot be None"),
        ("import cython\ndef read(at: cython.short) -> None: ...", 8, "cython.short is not among"),
        ("def read(at) -> None: ...", 7, "`at` has no annotation"),
        ("def read(at: int): ...", 7, "no annotation of its result"),
        ("class A:\n    __slots__ = ('at',)\n    def __init__(self) -> None:\n        self.at = 0", 10, "A.at"),
        ("def read() -> None:\n    at: int = 0\n    at: bytes = b''", 9, "another type above"),
        ("def read() -> Any:\n    at: Py_ssize_t = 0\n    yield at", 8, "read is not"),
        ("_T: Final[Annotated[list[int], 4]] = []", 7, "is a text"),
    ],
)
def test_an_annotation_without_a_translation_is_named_with_its_line(
    translate: Translate, source: str, line: int, words: str
) -> None:
    with pytest.raises(TypesError, match=rf"hot\.py:{line}: .*{words}"):
        translate(source)


def test_all_annotations_without_a_translation_are_named_together(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "cold.py").write_text(HEAD + "def read(at) -> None: ...")
    (package / "hot.py").write_text(HEAD + "def read(at: Py_ssize_t | None) -> None: ...\n_T: Py_ssize_t | None = None")
    listed = {f"package.{name}": package / f"{name}.py" for name in ("cold", "hot")}
    with pytest.raises(TypesError) as caught:
        texts(listed, package, [], {})
    named = [line.partition(": ")[0] for line in str(caught.value).splitlines()]
    assert sorted(named) == [f"{package / 'cold.py'}:7", f"{package / 'hot.py'}:7", f"{package / 'hot.py'}:8"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the compiled module ``hot``."""
    (tmp_path / "pyproject.toml").write_text('[tool.trouter]\ncompiled = ["package.hot"]\n')
    package = tmp_path / "package"
    package.mkdir()
    (package / "hot.py").write_text("def read() -> None: ...")
    return tmp_path


@pytest.mark.parametrize("source", ["absent", "by-hand", "not-compiled"])
def test_the_build_deletes_types_that_it_wrote_and_writes_no_more(project: Path, source: str) -> None:
    inner = project / "package" / "net"
    inner.mkdir()
    (inner / "waiting.pxd").write_text(f"{MARK} waiting.py: change its annotations.\ncdef class Waiting:\n    pass\n")
    if source == "not-compiled":
        (inner / "waiting.py").write_text("class Waiting: ...")
    elif source == "by-hand":
        (inner / "waiting.py").write_text("class Waiting: ...")
        (inner / "waiting.pxd").write_text("cdef class Waiting:\n    pass\n")
    Distribution(project, "package").write_types()
    assert (project / "package" / "hot.pxd").is_file()
    assert (inner / "waiting.pxd").is_file() is (source == "by-hand")


def test_a_file_by_hand_is_left_alone_and_its_names_are_known(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "octets.py").write_text("def cut(data: bytes) -> bytes: ...")
    (package / "octets.pxd").write_text("cdef inline bytes cut(bytes data):\n    return data\n")
    (package / "hot.py").write_text(
        HEAD + "from . import octets\ndef f(data: bytes) -> bytes:\n    return octets.cut(data)"
    )
    listed = {f"package.{name}": package / f"{name}.py" for name in ("hot", "octets")}
    written = texts(listed, package, [], {})
    assert written.keys() == {package / "hot.pxd"}
    assert "from package cimport octets\n" in written[package / "hot.pxd"]


def test_types_of_another_distribution_are_read_from_its_files(tmp_path: Path) -> None:
    lent, package = tmp_path / "site" / "lent", tmp_path / "package"
    lent.mkdir(parents=True)
    package.mkdir()
    (lent / "ports.pxd").write_text(f"{MARK} ports.py\ncdef class Sink:\n    cpdef object read(self)\n")
    (package / "hot.py").write_text(
        HEAD + "from lent.ports import Sink\nclass Own(Sink):\n    __slots__ = ()\n    def read(self) -> None: ..."
    )
    types = texts({"package.hot": package / "hot.py"}, package, [lent], {})[package / "hot.pxd"]
    assert "from lent.ports cimport Sink\n" in types
    assert "@cython.final\ncdef class Own(Sink):\n    pass\n" in types, "its method is as its base says"
