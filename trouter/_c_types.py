"""Write the C types of compiled modules, a `.pxd` beside each, from the annotations of their sources.

The build writes them, and `make c-types` does only this. What becomes C:

- A class with `__slots__` and no base, or one base that is C: a struct of its slots, in their order. The type of a slot
  is that of its annotated assignment (`self.count: Py_ssize_t = 0`), of the parameter that it is assigned from, of a
  display, or of a call of a class. A slot with an underscore is visible to C only. A class that no class of its
  distribution extends is final, unless a method with typed names overrides one of its base.
- A function or method with positional parameters only, no decorator, no closure, no `yield`, `await` or `super()`: an
  entry of C with the types of its parameters, its result, and the annotated names of its body. One with an underscore
  that is only called, by `self._name()` or `_name()`, is visible to C only; if it has no `return`,
  C need not count the references of a None.
- An annotated constant of a module with an underscore that no other module imports: a variable of C.

`Py_ssize_t` and others are imported from `cython` for type checkers only (typings/cython.pyi). To C `bool` is a flag
and `float` a double; `int` stays an object, because C has no integer without a limit. `Annotated[list[int], "int[4]"]`
gives a type in the words of C. Everything else is an object, or of the class of C that it names.

A `.pxd` without the first line of those that are written here is written by hand: its functions are inlined in C.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

#: The first words of a file that is written here.
MARK: Final = "# Written by the build from"
#: Names of `cython` by the C type that they stand for.
_NUMBERS: Final = {
    "Py_ssize_t": "Py_ssize_t",
    "int": "int",
    "longlong": "long long",
    "uint": "unsigned int",
    "p_uchar": "const unsigned char*",
}
_BUILTINS: Final = frozenset({"bytearray", "bytes", "dict", "frozenset", "list", "set", "str", "tuple"})
#: To Python they hold any object of the class, to C a number.
_NUMBERS_OF_PYTHON: Final = {"bool": "bint", "float": "double"}
#: What a function of C cannot contain.
_ONLY_PYTHON: Final = (
    ast.Await,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.FunctionDef,
    ast.GeneratorExp,
    ast.Lambda,
    ast.Yield,
    ast.YieldFrom,
)
#: How C sees that a function has raised, where it is not by a result of -1 that makes it look for an exception: a flag
#: is never -1, and Cython 3.3 writes a -1 of a `long long` with the suffix twice.
_FAILING: Final = {"bint": " except -1", "long long": " except *"}
#: An array or a pointer.
_MEMORY: Final = re.compile(r"\[\d|\*")
_DECLARED: Final = re.compile(r"^(?:cdef class (\w+)|c(?:p?)def [^=\n]*?(\w+)\()", re.MULTILINE)
_CLASSES: Final = re.compile(r"^cdef class (\w+)", re.MULTILINE)
_CIMPORTED: Final = re.compile(r"^from (\S+) cimport (.+)$", re.MULTILINE)
#: A class of C in a file of types: its name, its base, and its body.
_CLASS: Final = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:\n((?:    .*\n|\n)*)", re.MULTILINE)
_METHOD: Final = re.compile(r"^    c(?:p?)def [^=\n]*?(\w+)\(", re.MULTILINE)


_T = TypeVar("_T")


class TypesError(Exception):
    """Annotations have no translation to C; each line of the text begins with the file and line of one."""


class CType(NamedTuple):
    """A type of C: its words in a declaration."""

    words: str
    is_number: bool = False

    @property
    def local(self) -> str:
        """The type as an argument of ``cython.locals``."""
        if self.is_number and self.words.isidentifier():
            return f"cython.{self.words}"
        return self.words if self.words.isidentifier() else f'"{self.words}"'


_OBJECT: Final = CType("object")
_NUMBER_TYPES: Final = {name: CType(words, True) for name, words in _NUMBERS.items()} | {
    words: CType(words, True) for words in _NUMBERS_OF_PYTHON.values()
}


class Imported(NamedTuple):
    """Where a name of a module comes from; ``name`` is "" for a module itself."""

    module: str
    name: str


class DeclaredNames(NamedTuple):
    """The names of a module that another one can cimport."""

    classes: frozenset[str]
    names: frozenset[str]


class Function:
    """A function or method of a compiled module."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node
        self.name = node.name

    @property
    def is_c(self) -> bool:
        """Whether C can have it."""
        arguments, name = self.node.args, self.name
        if self.node.decorator_list or (name.startswith("__") and name.endswith("__")):
            return False
        if arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
            return False
        return not any(isinstance(node, _ONLY_PYTHON) or _is_super(node) for node in self._body())

    @property
    def returns_nothing(self) -> bool:
        """Whether no caller can use its result; Cython wants a value for every `return` in a function with a number."""
        returns = self.node.returns
        if not isinstance(returns, ast.Constant) or returns.value is not None:
            return False
        return not any(isinstance(node, ast.Return) for node in self._body())

    def _body(self) -> Iterator[ast.AST]:
        return (node for statement in self.node.body for node in ast.walk(statement))

    def locals(self) -> Iterator[tuple[str, ast.AnnAssign]]:
        """Yield the annotated names of the body."""
        for node in self._body():
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node


class Class:
    """A class of a compiled module that may be one of C."""

    def __init__(self, node: ast.ClassDef, slots: list[str]) -> None:
        self.node = node
        self.name = node.name
        self.slots = slots
        self.methods = [Function(each) for each in node.body if isinstance(each, ast.FunctionDef)]

    @property
    def has_c(self) -> bool:
        return bool(self.slots) or any(method.is_c for method in self.methods)

    def assignments(self) -> Iterator[tuple[str, ast.AnnAssign | ast.Assign, Function | None]]:
        """Yield the slots that are assigned, with the method that does it."""
        for node in self.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node, None
        for method in self.methods:
            for inner in ast.walk(method.node):
                if isinstance(inner, ast.AnnAssign | ast.Assign):
                    targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                    yield from ((name, inner, method) for target in targets if (name := _own_attribute(target)))


class Source:
    """The source of a module."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"), path)
        self.nodes = [*ast.walk(self.tree)]
        #: The names that the module imports anywhere, with their origins.
        self.imports = dict(self._imports())

    def _imports(self) -> Iterator[tuple[str, Imported]]:
        package = self.name.split(".")[:-1]
        for node in self.nodes:
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                yield from ((alias.asname or alias.name, Imported(source, alias.name)) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.asname or alias.name, Imported(alias.name, "")) for alias in node.names)


class Module(Source):
    """A compiled module as its source declares it."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name, path)
        self.functions = [Function(each) for each in self.tree.body if isinstance(each, ast.FunctionDef)]

    @property
    def types(self) -> Path:
        return self.path.with_suffix(".pxd")

    @cached_property
    def aliases(self) -> dict[str, ast.expr]:
        """Return the types that the module gives a name (``TypeAlias``)."""
        return {
            node.target.id: node.value
            for node in self.nodes
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
            if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
        }

    @cached_property
    def candidates(self) -> dict[str, Class]:
        """Every class with slots and no decorator, by name."""
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.decorator_list and not node.keywords:
                slots = _slots(node)
                if slots is not None:
                    found[node.name] = Class(node, slots)
        return found

    @cached_property
    def called_only(self) -> frozenset[str]:
        """Return the functions of the module that its code only calls."""
        called = {id(node.func) for node in _calls(self.nodes)}
        used = {
            node.id
            for node in self.nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called
        }
        return frozenset(function.name for function in self.functions) - used

    def error(self, node: ast.AST, text: str) -> TypesError:
        return TypesError(f"{self.path}:{getattr(node, 'lineno', 1)}: {text}")


class ModuleSources:
    """The modules of a distribution: those to be compiled, and what the others use of them."""

    def __init__(self, compiled: Mapping[str, Path], package: Path, used: Iterable[Path]) -> None:
        """Read the sources of ``package``; ``used`` are other packages whose types stand beside their modules."""
        self.modules = {name: Module(name, path) for name, path in compiled.items() if not _is_by_hand(path)}
        self._roots = [package.parent, *(folder.parent for folder in used)]
        self._declared: dict[str, DeclaredNames] = {}
        self._others = [
            Source(name, path)
            for path in sorted(package.rglob("*.py"))
            if (name := ".".join(path.relative_to(package.parent).with_suffix("").parts)) not in self.modules
        ]
        self._all: list[Source] = [*self.modules.values(), *self._others]

    def declared_by(self, name: str) -> DeclaredNames:
        """Return what a module declares to C; nothing for a module without types."""
        if name not in self._declared:
            self._declared[name] = DeclaredNames(frozenset(), frozenset())
            module = self.modules.get(name)
            self._declared[name] = self._of_file(name) if module is None else self._of_source(module)
        return self._declared[name]

    def _file(self, name: str) -> str:
        """Return the types that stand beside a module; "" for none."""
        paths = [root.joinpath(*name.split(".")).with_suffix(".pxd") for root in self._roots]
        return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")

    def _of_file(self, name: str) -> DeclaredNames:
        text = self._file(name)
        passed_on = {each for _, found in _CIMPORTED.findall(text) for each in found.split(", ")}
        by_hand = frozenset() if text.startswith(MARK) else passed_on
        names = {each for found in _DECLARED.findall(text) for each in found if each}
        return DeclaredNames(frozenset(_CLASSES.findall(text)) | by_hand, frozenset(names | by_hand))

    def _of_source(self, module: Module) -> DeclaredNames:
        classes = frozenset(name for name in module.candidates if self.is_class(module, name))
        functions = {function.name for function in module.functions if function.is_c}
        return DeclaredNames(classes, classes | functions)

    def is_class(self, module: Module, name: str) -> bool:
        """Return whether the class ``name`` of the module is one of C."""
        candidate = module.candidates.get(name)
        if candidate is None:
            return False
        bases = candidate.node.bases
        if not bases:
            return candidate.has_c
        return len(bases) == 1 and self.class_named(module, bases[0]) is not None

    def class_named(self, module: Module, node: ast.expr) -> Imported | None:
        """Return the class of C that an expression names, None if there is none."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            origin = module.imports.get(node.value.id)
            if origin is None:
                return None
            place = origin.module if not origin.name else f"{origin.module}.{origin.name}"
            return Imported(place, node.attr) if node.attr in self.declared_by(place).classes else None
        if not isinstance(node, ast.Name):
            return None
        if node.id in module.candidates:
            return Imported(module.name, node.id) if self.is_class(module, node.id) else None
        origin = module.imports.get(node.id)
        if origin is None or origin.name not in self.declared_by(origin.module).classes:
            return None
        return origin

    def methods_of(self, origin: Imported) -> frozenset[str]:
        """Return the methods that a class of C has and inherits in C."""
        module = self.modules.get(origin.module)
        if module is None:
            return self._methods_in_file(origin)
        each = module.candidates[origin.name]
        own = frozenset(method.name for method in each.methods if method.is_c)
        base = self.class_named(module, each.node.bases[0]) if each.node.bases else None
        return own if base is None else own | self.methods_of(base)

    def _methods_in_file(self, origin: Imported) -> frozenset[str]:
        text = self._file(origin.module)
        cimported = {each: module for module, found in _CIMPORTED.findall(text) for each in found.split(", ")}
        for name, base, body in _CLASS.findall(text):
            if name == origin.name:
                inherited = self.methods_of(Imported(cimported.get(base, origin.module), base)) if base else frozenset()
                return frozenset(_METHOD.findall(body)) | inherited
        return (
            self.methods_of(Imported(cimported[origin.name], origin.name)) if origin.name in cimported else frozenset()
        )

    def overridden_by(self, module: Module, each: Class) -> frozenset[str]:
        """Return the methods of C that a class has in place of those of its base."""
        base = self.class_named(module, each.node.bases[0]) if each.node.bases else None
        own = frozenset(method.name for method in each.methods if method.is_c)
        return frozenset() if base is None else own & self.methods_of(base)

    @cached_property
    def extended(self) -> frozenset[Imported]:
        """Return the classes of C that a class of this distribution extends."""
        found = set()
        for source in self._all:
            for node in source.nodes:
                for base in node.bases if isinstance(node, ast.ClassDef) else ():
                    named = base.value if isinstance(base, ast.Subscript) else base
                    if isinstance(named, ast.Name):
                        found.add(source.imports.get(named.id, Imported(source.name, named.id)))
        return frozenset(found)

    @cached_property
    def visible(self) -> frozenset[str]:
        """Return the attributes with an underscore that are used otherwise than by ``self._name()`` in a class of C.

        A class that extends no other uses only its own attributes by ``self``.
        """
        found: set[str] = set()
        for module in self.modules.values():
            direct = {id(node.func) for node in _calls(module.nodes) if _own_attribute(node.func)}
            found |= {node.attr for node in _attributes(module.nodes) if id(node) not in direct}
            for each in module.tree.body:
                if isinstance(each, ast.ClassDef) and each.bases and not self.is_class(module, each.name):
                    found |= _names_of_class(each)
        for source in self._others:
            found |= {node.attr for node in _attributes(source.nodes) if not _own_attribute(node)}
            for node in source.nodes:
                if isinstance(node, ast.ClassDef) and node.bases:
                    found |= _names_of_class(node)
        return frozenset(name for name in found if name.startswith("_"))

    @cached_property
    def taken(self) -> frozenset[Imported]:
        """Return every name that a module of this distribution imports from another."""
        return frozenset(origin for source in self._all for origin in source.imports.values())


class Writer:
    """Writes the types of one module."""

    def __init__(self, sources: ModuleSources, module: Module, freelists: Mapping[str, int]) -> None:
        self._sources = sources
        self._module = module
        self._freelists = freelists
        self._cimports: set[Imported] = set()
        #: What has no translation, in the order of the source.
        self.errors: list[TypesError] = []

    def text(self) -> str:
        """Return the content of the module's `.pxd`, without what is in ``errors`` afterwards."""
        module = self._module
        constants = [*self._constants()]
        classes = [
            self._class(each) for name, each in module.candidates.items() if self._sources.is_class(module, name)
        ]
        functions = [*self._functions()]
        self._add_names_of_code()
        head = f"{MARK} {module.path.name}: change its annotations.\ncimport cython\n"
        parts = [head + "".join(self._imports()), "\n".join(constants), *classes, "\n".join(functions)]
        return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"

    def _lines(self, make: Callable[..., _T], *arguments: object) -> list[_T]:
        """Return what ``make`` returns for a field, a function or a constant; note a TypesError and return nothing."""
        try:
            return [make(*arguments)]
        except TypesError as error:
            self.errors.append(error)
            return []

    def _imports(self) -> Iterator[str]:
        by_module: dict[str, list[str]] = {}
        for origin in sorted(self._cimports):
            by_module.setdefault(origin.module, []).append(origin.name)
        for name, names in by_module.items():
            yield f"from {name} cimport {', '.join(names)}\n"

    def _add_names_of_code(self) -> None:
        """Cimport the functions of C that the code of the module uses, and modules that have some by hand.

        A class that no type names stays a name of Python, which a test can replace.
        """
        module = self._module
        annotated = {id(node) for each in _annotations(module.nodes) for node in ast.walk(each)}
        used = {node.id for node in module.nodes if isinstance(node, ast.Name) and id(node) not in annotated}
        for name in used & module.imports.keys():
            origin = module.imports[name]
            inner = f"{origin.module}.{origin.name}"
            if name != (origin.name or name):
                continue
            declared = self._sources.declared_by(origin.module)
            if origin.name in declared.names - declared.classes or (
                inner not in self._sources.modules and self._sources.declared_by(inner).names
            ):
                self._cimports.add(origin)

    def _constants(self) -> Iterator[str]:
        for node in self._module.tree.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
                hidden = name.startswith("_") and Imported(self._module.name, name) not in self._sources.taken
                for kind in self._lines(self._type, node.annotation) if hidden else ():
                    if kind != _OBJECT:
                        yield f"cdef {kind.words} {name}"

    def _class(self, each: Class) -> str:
        module, node = self._module, each.node
        lines = []
        if kept := self._freelists.get(f"{module.name}.{each.name}"):
            lines.append(f"@cython.freelist({kept})")
        is_final, overrides = self._final_with(each)
        if is_final:
            lines.append("@cython.final")
        base = ""
        if node.bases and (origin := self._sources.class_named(module, node.bases[0])):
            base = f"({self._words(origin)})"
        lines.append(f"cdef class {each.name}{base}:")
        fields = [line for slot in each.slots for line in self._lines(self._field, each, slot)]
        methods = [
            line
            for method in each.methods
            if not (is_final and method.name in overrides)
            for lines in self._lines(self._function, method, each)
            for line in lines
        ]
        body = fields + ([""] if fields and methods else []) + methods
        return "\n".join([*lines, *(f"    {line}".rstrip() for line in body or ["pass"])])

    def _final_with(self, each: Class) -> tuple[bool, frozenset[str]]:
        """Return whether C can call the methods of a class directly, and the methods that it overrides.

        Cython takes an overriding method of a final class as its base declares it, and refuses another declaration. So
        a class whose overriding methods have typed names is not final.
        """
        overrides = self._sources.overridden_by(self._module, each)
        if Imported(self._module.name, each.name) in self._sources.extended:
            return False, overrides
        bodies = [method for method in each.methods if method.name in overrides]
        typed = any(self._type(node.annotation) != _OBJECT for method in bodies for _, node in method.locals())
        return not typed, overrides

    def _field(self, each: Class, slot: str) -> str:
        kind = self._slot_type(each, slot)
        hidden = slot.startswith("_") or _MEMORY.search(kind.words)
        return f"cdef {'' if hidden else 'public '}{kind.words} {slot}"

    def _slot_type(self, each: Class, slot: str) -> CType:
        assigned = [(node, method) for name, node, method in each.assignments() if name == slot]
        for node, _ in assigned:
            if isinstance(node, ast.AnnAssign):
                return self._type(node.annotation)
        for node, method in assigned:
            kind = self._type_of_value(node.value, method)
            if kind is not None:
                return kind
        place = assigned[0][0] if assigned else each.node
        raise self._module.error(
            place, f"what is {each.name}.{slot} to C? Annotate one assignment: `self.{slot}: Py_ssize_t` or `: int`"
        )

    def _type_of_value(self, value: ast.expr | None, method: Function | None) -> CType | None:
        """Return the type of an assigned expression; None if it does not say."""
        match value:
            case ast.Constant(bool() | bytes() | str() | float()):
                name = type(value.value).__name__
                return self._type(ast.Name(name))
            case ast.Name() if method is not None:
                arguments = method.node.args
                for argument in (*arguments.args, *arguments.kwonlyargs):
                    if argument.arg == value.id and argument.annotation is not None:
                        return self._type(argument.annotation)
            case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS:
                return CType(name)
            case ast.Call() if (origin := self._sources.class_named(self._module, value.func)) is not None:
                return CType(self._words(origin))
        return None

    def _functions(self) -> Iterator[str]:
        for function in self._module.functions:
            for lines in self._lines(self._function, function, None):
                yield from lines

    def _function(self, function: Function, owner: Class | None) -> list[str]:
        """Return the declaration of a function or of a method of ``owner``; [] if C cannot have it. TypesError."""
        node = function.node
        if not function.is_c:
            for name, annotated in function.locals():
                if self._type(annotated.annotation).words in _NUMBERS.values():
                    raise self._module.error(annotated, f"`{name}` is of C, and {function.name} is not")
            return []
        kinds: dict[str, CType] = {}
        for name, annotated in function.locals():
            kind = self._type(annotated.annotation)
            if kinds.setdefault(name, kind) != kind:
                raise self._module.error(annotated, f"`{name}` has another type above: give it another name")
        typed = [f"{name}={kind.local}" for name, kind in kinds.items() if kind != _OBJECT]
        lines = [f"@cython.locals({', '.join(typed)})"] if typed else []
        arguments = node.args.args
        first_default = len(arguments) - len(node.args.defaults)
        words = ["self"] if owner else []
        for index, argument in enumerate(arguments[len(words) :], len(words)):
            if argument.annotation is None:
                raise self._module.error(argument, f"`{argument.arg}` has no annotation")
            kind = self._type(argument.annotation)
            words.append(f"{kind.words} {argument.arg}{'=*' if index >= first_default else ''}")
        if node.returns is None:
            raise self._module.error(node, f"{function.name} has no annotation of its result")
        result = self._type(node.returns)
        failing = _FAILING.get(result.words, " except? -1") if result.is_number else ""
        entry = "cdef" if self._is_hidden(function, owner) else "cpdef"
        result_words = result.words
        if entry == "cdef" and function.returns_nothing:
            result_words, failing = "int", " except -1"
        return [*lines, f"{entry} {result_words} {function.name}({', '.join(words)}){failing}"]

    def _is_hidden(self, function: Function, owner: Class | None) -> bool:
        name = function.name
        if not name.startswith("_"):
            return False
        if owner is not None:
            return name not in self._sources.visible
        return name in self._module.called_only and Imported(self._module.name, name) not in self._sources.taken

    def _type(self, annotation: ast.expr) -> CType:
        """Return the type of C that an annotation stands for; TypesError."""
        module = self._module
        match annotation:
            case ast.Constant(None):
                return _OBJECT
            case ast.Constant(str() as text):
                return self._type(ast.copy_location(ast.parse(text, mode="eval").body, annotation))
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                sides = [each for each in (left, right) if not (isinstance(each, ast.Constant) and each.value is None)]
                if len(sides) == 2:
                    return _OBJECT
                kind = self._type(sides[0])
                if kind.words in _NUMBERS.values():
                    raise module.error(annotation, f"a {kind.words} cannot be None: use a number for it, or `int`")
                return _OBJECT if kind.is_number else kind
            case ast.Subscript(value=outer, slice=inner):
                return self._type_of_subscript(outer, inner)
            case ast.Attribute(value=ast.Name(id="cython"), attr=name):
                return self._number(annotation, name)
            case ast.Name(id=name) if name in module.aliases:
                return self._type(module.aliases[name])
            case ast.Name(id=name):
                origin = module.imports.get(name)
                if origin is not None and origin.module == "cython":
                    return self._number(annotation, origin.name)
                if origin is None and name in _NUMBERS_OF_PYTHON:
                    return _NUMBER_TYPES[_NUMBERS_OF_PYTHON[name]]
                if origin is None and name in _BUILTINS:
                    return CType(name)
        if isinstance(annotation, ast.Name | ast.Attribute):
            origin = self._sources.class_named(module, annotation)
            if origin is not None:
                return CType(self._words(origin))
        return _OBJECT

    def _type_of_subscript(self, outer: ast.expr, inner: ast.expr) -> CType:
        name = outer.id if isinstance(outer, ast.Name) else ""
        if name == "Annotated" and isinstance(inner, ast.Tuple) and len(inner.elts) == 2:
            words = inner.elts[1]
            if not (isinstance(words, ast.Constant) and isinstance(words.value, str)):
                raise self._module.error(outer, 'the type of C is a text: Annotated[list[int], "int[4]"]')
            return CType(words.value)
        if name == "Final":
            return self._type(inner)
        if name in {"TypeGuard", "TypeIs"}:
            return _NUMBER_TYPES["bint"]
        return self._type(outer) if name in _BUILTINS else _OBJECT

    def _number(self, annotation: ast.expr, name: str) -> CType:
        kind = _NUMBER_TYPES.get(name)
        if kind is None:
            known = ", ".join(sorted(_NUMBER_TYPES))
            raise self._module.error(annotation, f"cython.{name} is not among the types of C here: {known}")
        return kind

    def _words(self, origin: Imported) -> str:
        """Return the words for a class of C, and have it cimported."""
        if origin.module != self._module.name:
            self._cimports.add(origin)
        return origin.name


def texts(
    compiled: Mapping[str, Path], package: Path, used: Iterable[Path], freelists: Mapping[str, int]
) -> dict[Path, str]:
    """Return the types of the ``compiled`` modules, given by name, by the path of their file; TypesError.

    ``package`` is the folder of their package and ``used`` those of packages whose types they use. ``freelists`` says
    for how many deleted objects of a class memory is kept.
    """
    sources = ModuleSources(compiled, package, used)
    writers = {module.types: Writer(sources, module, freelists) for module in sources.modules.values()}
    written = {path: writer.text() for path, writer in writers.items()}
    if errors := [str(error) for writer in writers.values() for error in writer.errors]:
        raise TypesError("\n".join(errors))
    return written


def left_behind(package: Path, written: Iterable[Path]) -> list[Path]:
    """Return the files of types below ``package`` that an earlier build wrote and that are not ``written`` now."""
    files = set(package.rglob("*.pxd")) - set(written)
    return sorted(path for path in files if path.read_text(encoding="utf-8").startswith(MARK))


def _is_by_hand(source: Path) -> bool:
    types = source.with_suffix(".pxd")
    return types.is_file() and not types.read_text(encoding="utf-8").startswith(MARK)


def _annotations(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def _slots(node: ast.ClassDef) -> list[str] | None:
    for each in node.body:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and each.targets[0].id == "__slots__":
            value = ast.literal_eval(each.value)
            return [value] if isinstance(value, str) else list(value)
    return None


def _own_attribute(node: ast.expr) -> str:
    """Return NAME of ``self.NAME``, "" for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""


def _attributes(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    """Yield the attributes that are read."""
    return (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))


def _names_of_class(node: ast.ClassDef) -> set[str]:
    """Return the methods of a class, and the attributes of any object that its code reads."""
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)} | {
        each.attr for each in _attributes(ast.walk(node))
    }


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls without keywords."""
    return (node for node in nodes if isinstance(node, ast.Call) and not node.keywords)
