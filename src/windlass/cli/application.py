"""The application a command works on: `module:attribute`, as an argument, as `--app`, or in `WINDLASS_APP`."""

from __future__ import annotations

import difflib
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import reduce, wraps
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
from click.core import ParameterSource

from windlass.app import Windlass
from windlass.errors import ConfigurationError

_FORM: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DECLARED: Final = re.compile(r"^([A-Za-z_]\w*)\s*(?::[^=\n]+)?=\s*(?:windlass\.)?Windlass\(", re.MULTILINE)
_MAX_FILES: Final = 100
_MAX_BYTES: Final = 65_536


def application(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a command its application (first argument, `--app`/`-a`, or `WINDLASS_APP`) as the parameter `location`."""

    @click.argument("app_argument", metavar="[APP]", required=False)
    @click.option(
        "--app",
        "-a",
        "app_option",
        metavar="MODULE:ATTRIBUTE",
        envvar="WINDLASS_APP",
        show_envvar=True,
        help="The application, if it is not the first argument.",
    )
    @click.pass_context
    @wraps(command)
    def with_location(
        context: click.Context, /, *args: Any, app_argument: str | None, app_option: str | None, **options: Any
    ) -> Any:
        typed = context.get_parameter_source("app_option") is ParameterSource.COMMANDLINE
        if typed and app_argument not in (None, app_option):
            raise click.UsageError(f"two applications given: {app_argument} and --app {app_option}; name one")
        example = f"{context.command_path} shop:app"
        return command(*args, location=checked_location(app_argument or app_option, example), **options)

    return with_location


def load_app(location: str) -> Windlass:
    """Import the application at `module:attribute`; the current folder comes first on the path."""
    _put_folder_on_path()
    module_name, _, attribute = location.partition(":")
    module = _module(module_name, attribute)
    found = _attribute(module, attribute)
    if not isinstance(found, Windlass):
        raise ConfigurationError(
            f"{location} is {_article(type(found).__name__)}, not a Windlass application{_hint(_apps_in(module))}"
        )
    return found


def checked_location(location: str | None, example: str = "--app shop:app") -> str:
    """Return `module:attribute` if its form is right; raise a usage error otherwise."""
    if not location:
        raise click.UsageError(
            f"no application given: name it as module:attribute ({example}), "
            f"with --app, or in WINDLASS_APP{_hint(_declared_here())}"
        )
    if not _FORM.fullmatch(location):
        likely = _apps_of_module(location) or _repaired(location)
        raise click.UsageError(
            f"expected an application as module:attribute (shop:app), got {location!r}{_hint(likely)}"
        )
    return location


def _put_folder_on_path() -> None:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _apps_of_module(location: str) -> list[str]:
    """Return the applications of an importable module that was named without an attribute."""
    if not _MODULE.fullmatch(location):
        return []
    _put_folder_on_path()
    try:
        return _apps_in(import_module(location))
    except (Exception, SystemExit):  # noqa: BLE001 - users' code; the form is wrong in any case
        return []


def _module(name: str, attribute: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise _broken(name, error) from error  # the module exists, but something it imports does not
        here = [location for location in _declared_here() if location.endswith(f":{attribute}")] or _declared_here()
        close = difflib.get_close_matches(f"{name}:{attribute}", here, n=1, cutoff=0.4)
        raise ConfigurationError(
            f"there is no module {error.name!r} here ({os.getcwd()}) or among the installed packages{_hint(close)}"
        ) from None
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> ConfigurationError:
    """Return the error of the user's module, with the user's lines and without ours."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    lines = "".join([*traceback.format_list(theirs), *traceback.format_exception_only(error)])
    return ConfigurationError(f"importing {name} failed:\n{lines.rstrip()}")


def _attribute(module: ModuleType, attribute: str) -> object:
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        apps = _apps_in(module)
        close = difflib.get_close_matches(attribute, [app.partition(":")[2] for app in apps] or dir(module), n=1)
        hint = [f"{module.__name__}:{close[0]}"] if close else apps
        raise ConfigurationError(f"module {module.__name__} has no attribute {attribute!r}{_hint(hint)}") from None


def _apps_in(module: ModuleType) -> list[str]:
    return [f"{module.__name__}:{name}" for name, value in vars(module).items() if isinstance(value, Windlass)]


def _declared_here() -> list[str]:
    """Return applications that files of the current folder seem to create, without importing them."""
    found: list[str] = []
    for file in sorted(Path.cwd().glob("*.py"))[:_MAX_FILES]:
        try:
            text = file.read_bytes()[:_MAX_BYTES].decode(errors="replace")
        except OSError:
            continue
        found += [f"{file.stem}:{name}" for name in _DECLARED.findall(text)]
    return found


def _repaired(location: str) -> list[str]:
    """Return what was probably meant by a path, a dotted name or a bare module."""
    path, _, attribute = location.partition(":")
    module = path.removesuffix(".py").removeprefix("./").strip("/").replace("/", ".")
    here = _declared_here()
    same = [known for known in here if known.partition(":")[0] == module]
    if attribute or same:
        guess = f"{module}:{attribute}" if attribute else same[0]
        return [guess] if _FORM.fullmatch(guess) else here[:1]
    head, _, last = module.rpartition(".")
    guess = f"{head}:{last}" if head else f"{module}:app"
    return [guess] if _FORM.fullmatch(guess) else here[:1]


def _hint(candidates: Iterable[str]) -> str:
    names = list(candidates)[:3]
    return f"; did you mean {' or '.join(names)}?" if names else ""


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
