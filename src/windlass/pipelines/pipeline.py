"""A pipeline of an application: its declaration, and the verbs that submit executions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol, TypedDict, Unpack

from windlass.domain.options import UNSET
from windlass.domain.step_options import StepOptions
from windlass.domain.suggestions import did_you_mean
from windlass.errors import InvalidOptionError
from windlass.pipelines.declare import Pipeline
from windlass.pipelines.definition import Definition
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.pipelines.execution_submitter import ExecutionSubmitter, SubmitOptions
from windlass.pipelines.item_values import Values
from windlass.pipelines.pipeline_options import PipelineOptionsDict
from windlass.runtime.verbs import Verb, adrive, drive


class SubmitOptionsDict(TypedDict, total=False):
    """The options of `submit`."""

    key: str | None
    tenant: str | None
    correlation_id: str | None
    connection: Any


class SubmitManyDict(TypedDict, total=False):
    """The options of `submit_many`."""

    keys: Iterable[str | None] | None
    tenant: str | None
    correlation_id: str | None
    connection: Any


def checked_names(given: Mapping[str, Any], known: Any, verb: str) -> Mapping[str, Any]:
    """Return options, or raise if one of them is not known."""
    for name in given:
        if name not in known.__optional_keys__:
            hint = (
                did_you_mean(name, tuple(known.__optional_keys__))
                or f"; there are {', '.join(known.__optional_keys__)}"
            )
            raise InvalidOptionError(f"{verb}(): unknown option {name!r}{hint}")
    return given


class PipelineHome(Protocol):
    """The application, as far as its pipelines use it."""

    @property
    def submitter(self) -> ExecutionSubmitter:
        """What stores executions."""
        ...

    def register(self, definition: Definition) -> None:
        """Register the bodies that run executions."""

    def values_of(self, definition: Definition) -> Values:
        """Return the codec of a definition's values."""
        ...


class AppPipeline(Pipeline):
    """A pipeline that can be submitted to."""

    def __init__(
        self,
        name: str,
        version: str,
        *,
        defaults: StepOptions,
        declared: PipelineHome,
        **options: Unpack[PipelineOptionsDict],
    ) -> None:
        super().__init__(name, version, defaults=defaults, **options)
        self._home = declared

    def _define(self) -> Definition:
        definition = super()._define()
        self._home.register(definition)
        return definition

    @cached_property
    def values(self) -> Values:
        """The codec of its values."""
        return self._home.values_of(self.definition)

    def submit(self, value: Any, **options: Unpack[SubmitOptionsDict]) -> ExecutionHandle:
        """Store an execution with this input; it runs on the workers that declare this pipeline.

        Options: `key`, `tenant`, `correlation_id`, `connection`. The same key again returns the same execution, with
        `duplicate=True`; with another input it is a `KeyConflictError`. With `connection` it is stored if, and when,
        your transaction commits.
        """
        return drive(self._submit_one(value, options))

    async def asubmit(self, value: Any, **options: Unpack[SubmitOptionsDict]) -> ExecutionHandle:
        """Async twin of `submit`."""
        return await adrive(self._submit_one(value, options))

    def submit_many(self, values: Iterable[Any], **options: Unpack[SubmitManyDict]) -> list[ExecutionHandle]:
        """Store many executions in one transaction, all or none; return handles in order, duplicates marked.

        Options: `keys` (one for each), `tenant`, `correlation_id`, `connection`.
        """
        return drive(self._submit_many(values, options))

    async def asubmit_many(self, values: Iterable[Any], **options: Unpack[SubmitManyDict]) -> list[ExecutionHandle]:
        """Async twin of `submit_many`."""
        return await adrive(self._submit_many(values, options))

    def _submit_one(self, value: Any, options: SubmitOptionsDict) -> Verb[ExecutionHandle]:
        given = checked_names(options, SubmitOptionsDict, "submit")
        chosen = SubmitOptions(given.get("key"), given.get("tenant"), given.get("correlation_id"))
        (handle,) = yield from self._submit([(value, chosen)], given.get("connection", UNSET))
        return handle

    def _submit_many(self, values: Iterable[Any], options: SubmitManyDict) -> Verb[list[ExecutionHandle]]:
        given = checked_names(options, SubmitManyDict, "submit_many")
        inputs, keys = list(values), given.get("keys")
        chosen = [None] * len(inputs) if keys is None else list(keys)
        if len(chosen) != len(inputs):
            raise InvalidOptionError(
                f"keys must be as many as values, got {len(chosen)} keys for {len(inputs)} values; give None for those "
                "without"
            )
        shared = (given.get("tenant"), given.get("correlation_id"))
        rows = [(value, SubmitOptions(key, *shared)) for value, key in zip(inputs, chosen, strict=True)]
        return (yield from self._submit(rows, given.get("connection", UNSET)))

    def _submit(self, given: list[tuple[Any, SubmitOptions]], connection: Any) -> Verb[list[ExecutionHandle]]:
        return self._home.submitter.submit(self.definition, self.values, given, connection)
