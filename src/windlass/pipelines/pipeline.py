"""A pipeline of an application: its declaration, and the verbs that submit executions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Protocol, Unpack

from windlass.domain.options import UNSET
from windlass.domain.step_options import StepOptions
from windlass.errors import InvalidOptionError
from windlass.pipelines.declare import Pipeline
from windlass.pipelines.definition import Definition
from windlass.pipelines.execution_handle import ExecutionHandle
from windlass.pipelines.execution_submitter import ExecutionSubmitter, SubmitOptions
from windlass.pipelines.pipeline_options import PipelineOptionsDict
from windlass.pipelines.values import Values
from windlass.runtime.verbs import Verb, adrive, drive


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

    def submit(
        self,
        value: Any,
        *,
        key: str | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        connection: Any = UNSET,
    ) -> ExecutionHandle:
        """Store an execution with this input; it runs on the workers that declare this pipeline.

        The same key again returns the same execution, with `duplicate=True`; with another input it is a
        `KeyConflictError`. With `connection` it is stored if, and when, your transaction commits.
        """
        options = SubmitOptions(key, tenant, correlation_id)
        return drive(self._submit([(value, options)], connection))[0]

    async def asubmit(
        self,
        value: Any,
        *,
        key: str | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        connection: Any = UNSET,
    ) -> ExecutionHandle:
        """Async twin of `submit`."""
        options = SubmitOptions(key, tenant, correlation_id)
        return (await adrive(self._submit([(value, options)], connection)))[0]

    def submit_many(
        self,
        values: Iterable[Any],
        *,
        keys: Iterable[str | None] | None = None,
        tenant: str | None = None,
        connection: Any = UNSET,
    ) -> list[ExecutionHandle]:
        """Store many executions in one transaction, all or none; return handles in order, duplicates marked."""
        return drive(self._submit(_many(values, keys, tenant), connection))

    async def asubmit_many(
        self,
        values: Iterable[Any],
        *,
        keys: Iterable[str | None] | None = None,
        tenant: str | None = None,
        connection: Any = UNSET,
    ) -> list[ExecutionHandle]:
        """Async twin of `submit_many`."""
        return await adrive(self._submit(_many(values, keys, tenant), connection))

    def _submit(self, given: list[tuple[Any, SubmitOptions]], connection: Any) -> Verb[list[ExecutionHandle]]:
        return self._home.submitter.submit(self.definition, self.values, given, connection)


def _many(
    values: Iterable[Any], keys: Iterable[str | None] | None, tenant: str | None
) -> list[tuple[Any, SubmitOptions]]:
    inputs = list(values)
    given = [None] * len(inputs) if keys is None else list(keys)
    if len(given) != len(inputs):
        raise InvalidOptionError(f"keys must be as many as values, got {len(given)} keys for {len(inputs)} values")
    return [(value, SubmitOptions(key, tenant)) for value, key in zip(inputs, given, strict=True)]
