"""Sources of settings: files, the environment, arguments; and the errors for unknown names."""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from windlass.errors import ConfigurationError
from windlass.settings.option import Option, Section

Sections = Mapping[str, type[Section]]
_PREFIX = "WINDLASS_"
_ALIKE = 0.85
"""Similarity from which a name is taken for a misspelled setting; variables of CLI options are less similar."""


class Entry(NamedTuple):
    """One given value and its source."""

    section: str
    key: str
    raw: object
    source: str
    typed: bool = False

    def value(self, sections: Sections) -> object:
        """Return the checked value; an error also names the source."""
        option = _option(sections, self.section, self.key, self.source)
        try:
            return option.accept(self.raw) if self.typed else option.read(self.raw)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (from {self.source})") from None


def from_file(path: str | os.PathLike[str] | None, sections: Sections) -> Iterator[Entry]:
    """Read `path`, or the file of the current folder, if there is one."""
    file = _find_file() if path is None else Path(path)
    if file is None:
        return
    for section, table in _read_tables(file).items():
        yield from _from_table(section, table, sections, str(file))


def _from_table(section: str, table: object, sections: Sections, source: str) -> Iterator[Entry]:
    _refuse_unknown_section(sections, section, source)
    if not isinstance(table, dict):
        raise ConfigurationError(f"[{section}] must be a table of settings, got {table!r} (from {source})")
    for key, raw in table.items():
        if f"{section}.{key}" in sections:
            yield from _from_table(f"{section}.{key}", raw, sections, source)
        else:
            yield Entry(section, key, raw, source)


def from_environ(environ: Mapping[str, str], sections: Sections) -> Iterator[Entry]:
    """Read the ``WINDLASS_<SECTION>__<FIELD>`` variables; an inner section is one more part of the name."""
    for variable, raw in environ.items():
        if not variable.startswith(_PREFIX):
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if "__" in name:
            section, _, key = name.partition("__")
            inner, _, inner_key = key.partition("__")
            if f"{section}.{inner}" in sections:
                section, key = f"{section}.{inner}", inner_key
            yield Entry(section, key, raw, f"the variable {variable}")
        else:  # WINDLASS_URL, WINDLASS_APP, the twin of a CLI option, or a setting that would be ignored
            _refuse_single_underscore(variable, name, sections)


def _refuse_single_underscore(variable: str, name: str, sections: Sections) -> None:
    for section, kind in sections.items():
        key = name.removeprefix(f"{section}_".replace(".", "_"))
        if key != name and (close := difflib.get_close_matches(key, kind.options(), n=1, cutoff=_ALIKE)):
            right = f"{_PREFIX}{section}__{close[0]}".replace(".", "__").upper()
            raise ConfigurationError(
                f"the variable {variable} is not a setting; did you mean {right}, with two underscores?"
            )


def from_overrides(overrides: Mapping[str, Mapping[str, object]], sections: Sections) -> Iterator[Entry]:
    """Read arguments, by section and field; `msgspec.UNSET` counts as not given."""
    for section, values in overrides.items():
        _refuse_unknown_section(sections, section, "arguments")
        if not isinstance(values, Mapping):
            raise ConfigurationError(f"overrides[{section!r}] must map fields to values, got {values!r}")
        for key, value in values.items():
            inner = f"{section}.{key}"
            if inner in sections and value is not msgspec.UNSET:
                given = value.given() if isinstance(value, sections[inner]) else cast("Mapping[str, object]", value)
                yield from from_overrides({inner: given}, sections)
            elif value is not msgspec.UNSET:
                yield Entry(section, key, value, "arguments", typed=True)


def _find_file() -> Path | None:
    candidates = (Path("windlass.toml"), Path("pyproject.toml"))
    return next((file for file in candidates if file.is_file()), None)


def _read_tables(file: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the settings file {file} cannot be read: {error.strerror}; check its path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings file {file} is not valid TOML: {error}") from None
    if file.name != "pyproject.toml":
        return document
    tables = document.get("tool", {}).get("windlass", {})
    if not isinstance(tables, dict):
        raise ConfigurationError(f"[tool.windlass] must hold tables of settings, got {tables!r} (from {file})")
    return tables


def _option(sections: Sections, section: str, key: str, source: str) -> Option[Any, Any]:
    _refuse_unknown_section(sections, section, source)
    options = sections[section].options()
    if key not in options:
        parts = {f"{part}_{name}": f"{part}.{name}" for part, name in _inner_fields(sections[section])}
        parts |= {part: part for part in sections[section].inner()}
        hint = _suggestion(key, parts | {name: name for name in options})
        known = ", ".join(options)
        raise ConfigurationError(f"unknown setting {section}.{key} (from {source}){hint}; [{section}] has: {known}")
    return options[key]


def _inner_fields(section: type[Section]) -> Iterator[tuple[str, str]]:
    return ((part, name) for part, kind in section.inner().items() for name in kind.options())


def _refuse_unknown_section(sections: Sections, section: str, source: str) -> None:
    if section in sections:
        return
    # A field written without its section is a likely slip, so fields are candidates as well.
    homes: dict[str, str] = {}
    for name, kind in sections.items():
        for key in kind.options():
            homes.setdefault(key, f"{name}.{key}")
    hint = _suggestion(section, homes | {name: name for name in sections})
    known = ", ".join(sections)
    raise ConfigurationError(f"unknown settings section {section!r} (from {source}){hint}; there are: {known}")


def _suggestion(given: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(given.lower().replace("-", "_"), known, n=1)
    return f"; did you mean {known[close[0]]}?" if close else ""
