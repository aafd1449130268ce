"""One settings field: its default, what it accepts, how it is parsed from text, and the error that names it."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from windlass.domain.circuit import CircuitProfile
from windlass.domain.cron import Cron as CronTimes
from windlass.domain.durations import seconds
from windlass.errors import ConfigurationError

Accepted = TypeVar("Accepted")
Value = TypeVar("Value")


class Default(Generic[Value]):
    """A field's value when none was given, so that it can be distinguished from the same value given in code."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class Option(Generic[Accepted, Value]):
    """A field of a settings section, as a descriptor: checks values and stores them in one form.

    As a descriptor it can accept more types than it returns: a duration may be set as a timedelta, is read as seconds,
    and type checkers know both.
    """

    def __init__(self, default: Value, allowed: str, wire_type: Any, accept: Callable[[Any], Value]) -> None:
        self.default = default
        self.allowed = allowed
        self.path = ""
        self._name = ""
        self._wire_type = wire_type
        self._accept = accept

    def __set_name__(self, owner: "type[Section]", name: str) -> None:
        self._name = name
        self.path = f"{owner.section}.{name}"

    def __get__(self, instance: object | None, owner: type | None = None) -> Value:
        if instance is None:  # what a dataclass takes for the default of its field
            return cast("Value", Default(self.default))
        value: Value = instance.__dict__[self._name]
        return value

    def __set__(self, instance: object, value: Accepted) -> None:
        if isinstance(value, Default):
            instance.__dict__[self._name] = self.default
        else:
            instance.__dict__[self._name] = self.accept(value)
            instance.__dict__.setdefault("_given", set()).add(self._name)

    def accept(self, value: object) -> Value:
        """Return a value given in code as it is kept, or raise `ConfigurationError`."""
        try:
            return self._accept(value)
        except ValueError:
            raise self._refusal(value) from None

    def read(self, raw: object) -> Value:
        """Return a value from a file or a variable, where anything may be a string, as it is kept."""
        given = None if isinstance(raw, str) and raw.strip().lower() == "none" else raw
        try:
            return self._accept(msgspec.convert(given, self._wire_type, strict=False))
        except (ValueError, msgspec.ValidationError):
            raise self._refusal(raw) from None

    def _refusal(self, value: object) -> ConfigurationError:
        return ConfigurationError(f"{self.path} must be {self.allowed}, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A named group of settings; its fields are `Option`s, or sections of their own."""

    section: ClassVar[str]
    """Its name, e.g. `pipelines`; that of an inner section begins with the outer one's: `pipelines.defaults`."""

    def __post_init__(self) -> None:
        for name, kind in self.inner().items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigurationError(
                    f"{kind.section} must be a {kind.__name__}, got {getattr(self, name)!r}; "
                    f"write {name}={kind.__name__}(...)"
                )

    @classmethod
    def options(cls) -> dict[str, Option[Any, Any]]:
        """Return the fields by name, for code that loads or documents them, without the inner sections."""
        return {item.name: vars(cls)[item.name] for item in fields(cls) if item.default_factory is MISSING}

    @classmethod
    def inner(cls) -> "dict[str, type[Section]]":
        """Return the classes of the inner sections by field."""
        kinds: dict[str, object] = {item.name: item.default_factory for item in fields(cls)}
        return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Section)}

    def given(self) -> dict[str, Any]:
        """Return the fields that were given a value, even if it equals the default; inner sections as mappings."""
        names: set[str] = vars(self).get("_given", set())
        found = {name: getattr(self, name) for name in self.options() if name in names}
        return found | {name: getattr(self, name).given() for name in self.inner()}


class SecretOption(Option[Accepted, Value]):
    """A field whose values are in no error."""

    def _refusal(self, value: object) -> ConfigurationError:
        return ConfigurationError(f"{self.path} must be {self.allowed}, got a {type(value).__name__} (not shown)")


class Secrets(tuple[str, ...]):
    """Texts that a repr does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} secret{'' if len(self) == 1 else 's'}>" if self else "()"


Seconds: TypeAlias = Option[float | timedelta, float]
OptionalSeconds: TypeAlias = Option[float | timedelta | None, float | None]
Whole: TypeAlias = Option[int, int]
OptionalWhole: TypeAlias = Option[int | None, int | None]
Switch: TypeAlias = Option[bool, bool]
SecretTexts: TypeAlias = Option[Sequence[str], Secrets]
CommitMode: TypeAlias = Literal["group", "each"]
Commit: TypeAlias = Option[CommitMode, CommitMode]
Cron: TypeAlias = Option[str | None, str | None]
KeptLogs: TypeAlias = Literal["job", "all", "none"]
KeepLogs: TypeAlias = Option[KeptLogs, KeptLogs]
Profile: TypeAlias = Option[CircuitProfile | str, CircuitProfile]


def duration(default: float, *, zero: str = "") -> Seconds:
    """Make a number of seconds above 0; or from 0 on, when `zero` says what 0 means."""
    if zero:
        return Option(default, f"seconds or a timedelta, 0 ({zero}) or more", float, _from_zero)
    return Option(default, "seconds or a timedelta above 0", float, _above_zero)


def optional_duration(default: float) -> OptionalSeconds:
    """Make a number of seconds above 0 that may be absent."""
    allowed = 'seconds or a timedelta above 0, or None ("none" in files and variables)'
    return Option(default, allowed, float | None, lambda value: None if value is None else _above_zero(value))


def whole(default: int, *, minimum: int) -> Whole:
    """Make a whole number of at least `minimum`."""
    maximum = 2**31 - 1  # what an INTEGER column of any database holds

    def accept(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise ValueError
        return value

    return Option(default, f"a whole number from {minimum} to {maximum}", int, accept)


def optional_bytes(default: int | None, *, minimum: int) -> OptionalWhole:
    """Make a number of bytes of at least `minimum` that may be absent."""
    maximum = 2**63 - 1  # what the kernel takes

    def accept(value: Any) -> int | None:
        if isinstance(value, bool) or not (value is None or (isinstance(value, int) and minimum <= value <= maximum)):
            raise ValueError
        return value

    allowed = f'a number of bytes from {minimum} on, or None ("none" in files and variables)'
    return Option(default, allowed, int | None, accept)


def secrets(shortest: int) -> SecretTexts:
    """Make a list of secrets, none by default; in variables they are separated by commas."""

    def accept(value: Any) -> Secrets:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(one, str) for one in parts):
            raise ValueError
        found = Secrets(one.strip() for one in parts)
        if any(len(one) < shortest for one in found) or len(set(found)) != len(found):
            raise ValueError
        return found

    allowed = f"different texts of at least {shortest} characters, the one that signs first"
    return SecretOption(Secrets(), allowed, str | list[str], accept)


def switch(default: bool) -> Switch:
    """Make a value that is on or off."""

    def accept(value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    return Option(default, "true or false", bool, accept)


def commit_mode(default: CommitMode) -> Commit:
    """Make a choice between "group" and "each"."""

    def accept(value: Any) -> CommitMode:
        if value == "group" or value == "each":  # noqa: PLR1714 - the type checker follows ==, not `in`
            mode: CommitMode = value
            return mode
        raise ValueError

    return Option(default, '"group" or "each"', str, accept)


def cron(default: str) -> Cron:
    """Make a cron expression."""

    def accept(value: Any) -> str | None:
        return None if value is None else CronTimes.parse(value).expression

    allowed = 'a cron expression, e.g. "0 2 * * *", or None ("none" in files and variables)'
    return Option(default, allowed, str | None, accept)


def kept_logs(default: KeptLogs) -> KeepLogs:
    """Make a choice of loggers. In files and variables "none" is read as None, like everywhere."""

    def accept(value: Any) -> KeptLogs:
        match value:
            case "job" | "all":
                return value  # type: ignore[no-any-return]  # mypy does not narrow Any
            case "none" | None:
                return "none"
        raise ValueError

    return Option(default, '"job", "all" or "none"', str | None, accept)


def circuit_profile(default: CircuitProfile) -> Profile:
    """Make a choice of circuit profile, by its name in files and variables."""
    names = {profile.name.lower(): profile for profile in CircuitProfile}

    def accept(value: Any) -> CircuitProfile:
        if isinstance(value, CircuitProfile):
            return value
        if isinstance(value, str) and value.strip().lower() in names:
            return names[value.strip().lower()]
        raise ValueError

    allowed = f"a CircuitProfile, or its name: {', '.join(names)}"
    return Option(default, allowed, str, accept)


def _from_zero(value: Any) -> float:
    return seconds(value, "")


def _above_zero(value: Any) -> float:
    given = seconds(value, "")
    if not given:
        raise ValueError
    return given
