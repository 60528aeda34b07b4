"""How plugins get in: through a real manager and real entry points; what would guard nothing stops the start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from trouter.hooks import ListenerFacts, PluginDescription, PluginError, Plugins, RouterFacts, hookimpl

Install = Callable[[str, str], str]


class Guard:
    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> list[str]:
        return ["PLAIN"]


def test_a_misspelt_hook_is_named_with_the_nearest_one() -> None:
    class Misspelt:
        @hookimpl
        def sasl_mechanism(self, listener: ListenerFacts) -> list[str]:
            return []

    with pytest.raises(PluginError, match=r"Misspelt: there is no hook sasl_mechanism, did you mean sasl_mechanisms\?"):
        Plugins([Guard, Misspelt])


def test_a_hook_that_resembles_none_is_named() -> None:
    class Odd:
        @hookimpl
        def qqq(self) -> None: ...

    with pytest.raises(PluginError, match=r"there is no hook qqq$"):
        Plugins([Odd])


def test_a_wrong_argument_name_is_refused() -> None:
    class Wrong:
        @hookimpl
        def sasl_mechanisms(self, listner: ListenerFacts) -> list[str]:
            return []

    with pytest.raises(PluginError, match="listner"):
        Plugins([Wrong])


def test_an_async_hook_is_refused() -> None:
    class Late:
        @hookimpl
        async def open_sasl(self) -> None: ...

    with pytest.raises(PluginError, match="open_sasl is async, but hooks are never awaited"):
        Plugins([Late])


@pytest.mark.parametrize("nothing", [object, ModuleType("empty"), "sasl_plain", 7])
def test_a_plugin_without_hooks_is_refused(nothing: object) -> None:
    with pytest.raises(PluginError, match="implements no hook"):
        Plugins([nothing])


def test_an_unmarked_function_is_no_hook() -> None:
    class Unmarked:
        def open_sasl(self) -> None: ...

    with pytest.raises(PluginError, match="implements no hook"):
        Plugins([Unmarked])


def test_a_plugin_that_cannot_be_made_is_refused() -> None:
    class Fails(Guard):
        def __init__(self) -> None:
            raise RuntimeError("no battery")

    with pytest.raises(PluginError, match="Fails cannot be registered: no battery"):
        Plugins([Fails])


def test_the_same_plugin_twice_is_refused() -> None:
    with pytest.raises(PluginError, match="Guard cannot be registered"):
        Plugins([Guard, Guard])


def test_a_module_with_a_plugin_class_gives_each_router_its_own() -> None:
    class Counting:
        def __init__(self) -> None:
            self.told = 0

        @hookimpl
        def configure(self) -> None:
            self.told += 1

        @hookimpl
        def sasl_mechanisms(self) -> list[str]:
            return [f"X-{self.told}"]

    module = ModuleType("counting")
    module.Plugin = Counting  # type: ignore[attr-defined]
    one, other = Plugins([module]), Plugins([module])
    one.configure(RouterFacts("QDR.A"))
    listener = ListenerFacts("here", "", "amqp")
    assert one.sasl_mechanisms(listener) == ("X-1",)
    assert other.sasl_mechanisms(listener) == ("X-0",)
    assert one.describe() == (PluginDescription("counting", "counting", ("configure", "sasl_mechanisms")),)


# Entry points


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution with one module, whose entry point has the module's name."""

    def install(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text("from trouter.hooks import hookimpl\n" + source)
        information = tmp_path / f"dist_{name}-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.5\n")
        (information / "entry_points.txt").write_text(f"[trouter.test]\n{name} = {name}\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    monkeypatch.syspath_prepend(str(tmp_path))
    return install


GOOD = "@hookimpl\ndef sasl_mechanisms(listener): return ['X-{}']\n"


def test_installed_plugins_are_loaded_and_described(install: Install) -> None:
    install("tp_second", GOOD.format(2))
    install("tp_first", GOOD.format(1))
    plugins = Plugins.load("trouter.test")
    assert plugins.describe() == (
        PluginDescription("tp_first", "dist-tp_first 1.5, tp_first", ("sasl_mechanisms",)),
        PluginDescription("tp_second", "dist-tp_second 1.5, tp_second", ("sasl_mechanisms",)),
    )
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ("X-1", "X-2")


def test_only_the_named_plugins_are_loaded(install: Install) -> None:
    install("tp_third", GOOD.format(3))
    install("tp_broken", "raise ImportError('never imported')\n")
    assert [loaded.name for loaded in Plugins.load("trouter.test", only=["tp_third"]).describe()] == ["tp_third"]


def test_a_named_plugin_that_is_not_installed_stops_the_start(install: Install) -> None:
    install("tp_fourth", GOOD.format(4))
    with pytest.raises(PluginError, match=r"plugin absent is not installed \(installed: tp_fourth\)"):
        Plugins.load("trouter.test", only=["absent"])


@pytest.mark.parametrize("source", ["raise RuntimeError('broken')\n", "import no_such_module_anywhere\n", "def (\n"])
def test_a_plugin_that_cannot_be_imported_stops_the_start(install: Install, source: str) -> None:
    name = install("tp_fifth", source)
    with pytest.raises(PluginError, match=f"plugin {name} .* cannot be imported"):
        Plugins.load("trouter.test")


def test_a_misspelt_hook_in_an_installed_plugin_stops_the_start(install: Install) -> None:
    install("tp_sixth", "@hookimpl\ndef anotation_filter(endpoint): ...\n")
    with pytest.raises(
        PluginError, match="tp_sixth: there is no hook anotation_filter, did you mean annotation_filter"
    ):
        Plugins.load("trouter.test")


def test_without_installed_plugins_nobody_gets_in() -> None:
    plugins = Plugins.load("trouter.nobody")
    assert plugins.describe() == ()
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()
