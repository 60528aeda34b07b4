"""Registration of plugins with a real manager and real entry points; a plugin without effect stops the start."""

from __future__ import annotations

import py_compile
import subprocess
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType

import pytest

from trouter.hooks import (
    ConfigurationRefused,
    InstalledPlugin,
    ListenerFacts,
    PluginDescription,
    PluginError,
    Plugins,
    RouterFacts,
    digest_of,
    hookimpl,
    installed_plugins,
)

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
            self.calls = 0

        @hookimpl
        def configure(self) -> None:
            self.calls += 1

        @hookimpl
        def sasl_mechanisms(self) -> list[str]:
            return [f"X-{self.calls}"]

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
    """Install a distribution with one module, whose entry point has the module's name."""

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


GROUP = "trouter.test"
GOOD = "@hookimpl\ndef sasl_mechanisms(listener): return ['X-{}']\n"


def test_installed_plugins_are_loaded_and_described(install: Install) -> None:
    install("tp_second", GOOD.format(2))
    install("tp_first", GOOD.format(1))
    plugins = Plugins.load({"tp_first": "", "tp_second": ""}, GROUP)
    assert plugins.describe() == (
        PluginDescription("tp_first", "dist-tp_first 1.5, tp_first", ("sasl_mechanisms",)),
        PluginDescription("tp_second", "dist-tp_second 1.5, tp_second", ("sasl_mechanisms",)),
    )
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ("X-1", "X-2")


def test_only_the_listed_plugins_are_loaded(install: Install) -> None:
    install("tp_third", GOOD.format(3))
    install("tp_broken", "raise ImportError('never imported')\n")
    assert [loaded.name for loaded in Plugins.load({"tp_third": ""}, GROUP).describe()] == ["tp_third"]


def test_a_listed_plugin_that_is_not_installed_stops_the_start(install: Install) -> None:
    install("tp_fourth", GOOD.format(4))
    with pytest.raises(PluginError, match=r"plugin absent is listed and not installed \(installed: tp_fourth\)"):
        Plugins.load({"absent": ""}, GROUP)


@pytest.mark.parametrize("source", ["raise RuntimeError('broken')\n", "import no_such_module_anywhere\n", "def (\n"])
def test_a_plugin_that_cannot_be_imported_stops_the_start(install: Install, source: str) -> None:
    name = install("tp_fifth", source)
    with pytest.raises(PluginError, match=f"plugin {name} .* cannot be imported"):
        Plugins.load({name: ""}, GROUP)


def test_a_misspelt_hook_in_an_installed_plugin_stops_the_start(install: Install) -> None:
    install("tp_sixth", "@hookimpl\ndef anotation_filter(endpoint): ...\n")
    with pytest.raises(
        PluginError, match="tp_sixth: there is no hook anotation_filter, did you mean annotation_filter"
    ):
        Plugins.load({"tp_sixth": ""}, GROUP)


def test_without_installed_plugins_no_client_gets_in() -> None:
    plugins = Plugins.load(entry_point_group="trouter.nobody")
    assert plugins.describe() == ()
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()


def test_an_installed_plugin_that_is_not_listed_is_reported(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install("tp_stranger", "raise AssertionError('its code never runs')\n")
    assert Plugins.load(entry_point_group=GROUP).describe() == ()
    assert caplog.messages == [
        "plugin tp_stranger (dist-tp_stranger 1.5) is installed but not loaded: the configuration does not list it"
    ]


def test_a_name_that_two_packages_claim_is_given_to_neither(install: Install, tmp_path: Path) -> None:
    install("tp_seventh", GOOD.format(7))
    other = tmp_path / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[trouter.test]\ntp_seventh = somewhere_else\n")
    with pytest.raises(PluginError, match="plugin tp_seventh is installed by dist-tp_seventh and other"):
        Plugins.load({"tp_seventh": ""}, GROUP)


def test_the_routers_own_need_not_be_listed_and_cannot_be_supplanted(tmp_path: Path, install: Install) -> None:
    install("sasl_plain", "raise AssertionError('its code never runs')\n")
    (tmp_path / "dist_sasl_plain-1.5.dist-info" / "entry_points.txt").write_text(
        "[trouter.plugins]\nsasl_plain = sasl_plain\n"
    )
    loaded = {plugin.name: plugin.origin for plugin in Plugins.load().describe()}
    assert loaded["sasl_plain"].endswith("trouter_plugins.sasl_plain")
    assert loaded["sasl_plain"].startswith("trouter ")
    with pytest.raises(PluginError, match="plugin sasl_plain is installed by dist-sasl_plain and trouter"):
        Plugins.load({"sasl_plain": ""})


def the_only(group: str = GROUP) -> InstalledPlugin:
    (found,) = installed_plugins(group)
    return found


def output_of(command: str, folder: Path) -> str:
    """Return the first word of a shell command's output."""
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def test_the_hash_equals_the_output_of_sha256sum(install: Install, tmp_path: Path) -> None:
    install("tp_eighth", GOOD.format(8))
    assert digest_of(the_only()) == output_of("sha256sum tp_eighth.py | sha256sum", tmp_path)


def test_the_hash_of_a_package_covers_every_file_but_the_caches(install: Install, tmp_path: Path) -> None:
    install("tp_ninth", "")
    (tmp_path / "tp_ninth.py").unlink()
    package = tmp_path / "tp_ninth"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "data.json").write_text("{}")
    (package / "inner" / "__pycache__" / "data.pyc").write_text("?")
    command = "find tp_ninth -type f ! -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    before = digest_of(the_only())
    assert before == output_of(command, tmp_path)
    (package / "inner" / "data.json").write_text("{ }")
    assert digest_of(the_only()) != before


def test_a_plugin_with_another_hash_is_not_even_imported(install: Install, tmp_path: Path) -> None:
    install("tp_tenth", GOOD.format(10))
    good = digest_of(the_only())
    assert Plugins.load({"tp_tenth": good}, GROUP).describe()
    source = tmp_path / "tp_tenth.py"
    source.write_text("raise AssertionError('its code never runs')\n")
    with pytest.raises(PluginError, match=rf"tp_tenth.py\) is not what is listed: sha256:(?!{good})[0-9a-f]{{64}}"):
        Plugins.load({"tp_tenth": good}, GROUP)


def test_a_plugin_with_a_hash_is_not_taken_from_a_cache_of_compiled_code(install: Install, tmp_path: Path) -> None:
    install("tp_eleventh", GOOD.format("SOURCE"))
    forged = tmp_path / "forged.py"
    forged.write_text("from trouter.hooks import hookimpl\n" + GOOD.format("FORGED"))
    source = tmp_path / "tp_eleventh.py"
    py_compile.compile(
        str(forged), cache_from_source(str(source)), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    (plugins, pinned) = (Plugins.load({"tp_eleventh": ""}, GROUP), digest_of(the_only()))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ("X-FORGED",)
    del sys.modules["tp_eleventh"]
    plugins = Plugins.load({"tp_eleventh": pinned}, GROUP)
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ("X-SOURCE",)


def test_each_plugin_gets_its_own_settings() -> None:
    calls: dict[str, object] = {}

    def curious(name: str) -> ModuleType:
        module = ModuleType(name)

        @hookimpl
        def configure(router: RouterFacts) -> None:
            calls[name] = dict(router.settings)

        module.configure = configure  # type: ignore[attr-defined]
        return module

    plugins = Plugins([curious("a"), curious("b")])
    plugins.configure(RouterFacts("QDR.A"), {"a": {"file": "x"}})
    assert calls == {"a": {"file": "x"}, "b": {}}
    with pytest.raises(ConfigurationRefused, match="pluginSettings: there is no plugin c"):
        plugins.configure(RouterFacts("QDR.A"), {"c": {}})
