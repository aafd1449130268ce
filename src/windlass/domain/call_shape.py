"""The signature of a target, as the extension points see it that convert arguments and results."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class CallParameter(Protocol):
    """One parameter of a target, as a serializer sees it."""

    @property
    def name(self) -> str:
        """The name in the signature."""

    @property
    def annotation(self) -> Any:
        """The resolved annotation; `typing.Any` where there is none."""


class CallShape(Protocol):
    """The signature of a target without `self` or `cls`, as a serializer sees it."""

    @property
    def name(self) -> str:
        """The target's name in errors."""

    @property
    def positional(self) -> Sequence[CallParameter]:
        """The parameters that may be given by position, in order."""

    @property
    def keyword(self) -> Mapping[str, CallParameter]:
        """The parameters that may be given by name."""

    @property
    def var_positional(self) -> CallParameter | None:
        """The `*args` of the target, if it has them."""

    @property
    def var_keyword(self) -> CallParameter | None:
        """The `**kwargs` of the target, if it has them."""

    @property
    def returns(self) -> Any:
        """The resolved return annotation (for a coroutine function: of the awaited value); `typing.Any` if none."""

    def bind_check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise `TypeError`, naming the target, unless it could be called with these arguments."""
