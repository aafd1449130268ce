"""The pipelines that an application declares, and the bodies that run their executions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

from windlass.context import JobContext
from windlass.domain.execution import OPEN
from windlass.domain.publication import REMOTE, SubscriptionRow
from windlass.errors import ConfigurationError
from windlass.pipelines.claimed_execution import ClaimedExecution
from windlass.pipelines.definition import Definition
from windlass.pipelines.delivery_sources import handoff_destination
from windlass.pipelines.execution_run import ExecutionRun
from windlass.pipelines.execution_submitter import ExecutionSubmitter
from windlass.pipelines.item_values import Values
from windlass.pipelines.node_runtime import NodeRuntime
from windlass.pipelines.part_run import run_part
from windlass.pipelines.pipeline import AppPipeline
from windlass.pipelines.pipeline_options import PipelineOptionsDict
from windlass.pipelines.pipeline_parts import PipelineParts
from windlass.pipelines.publication_declaration import check_subscriber, refuse_names
from windlass.pipelines.reject_outlet import RejectOutlet, SinkOfVersion
from windlass.pipelines.reject_sinks import destination_of, is_fed, sink_of_name
from windlass.pipelines.relay_bells import RelayBells
from windlass.pipelines.subscribers import Subscribers
from windlass.pipelines.token_keys import TokenKeys
from windlass.settings import PipelinesSettings
from windlass.spi import Outlet, Serializer
from windlass.submission.registry import Registry
from windlass.submission.target import TargetFunction


class DeclaredPipelines:
    """All pipelines of one application, by name and version."""

    def __init__(
        self,
        registry: Registry,
        parts: PipelineParts,
        submitter: ExecutionSubmitter,
        dead_letter_provider: Outlet | None = None,
    ) -> None:
        self._registry = registry
        self._parts = parts
        self.submitter = submitter
        """What stores executions."""
        self._declared: dict[tuple[str, str], AppPipeline] = {}
        self.dead_letter_provider = dead_letter_provider
        """Where dead letters go in addition to the store; None: nowhere else."""
        self.subscribers = Subscribers(lambda: tuple(self._declared.values()), self._wake_relays)
        """The pipelines that subscribe to publications."""

    def declare(self, name: str, version: str, options: PipelineOptionsDict) -> AppPipeline:
        """Declare a pipeline; the same name and version twice is an error."""
        defaults = self._parts.settings.defaults.step_options()
        made = AppPipeline(name, version, defaults=defaults, declared=self, **options)
        if (made.name, made.version) in self._declared:
            raise ConfigurationError(
                f"pipeline {name}@{version} is declared twice in this application; give one of them another name or "
                "version"
            )
        self._declared[made.name, made.version] = made
        return made

    def __iter__(self) -> Any:
        return iter(self._declared.values())

    @property
    def any(self) -> bool:
        """Whether any pipeline is declared."""
        return bool(self._declared)

    @property
    def serializer(self) -> Serializer:
        """What encodes values."""
        return self._parts.serializer

    @property
    def settings(self) -> PipelinesSettings:
        """The settings of pipelines."""
        return self._parts.settings

    @property
    def tokens(self) -> TokenKeys:
        """Keys of the tokens of steps that wait outside."""
        return self._parts.tokens

    @property
    def bells(self) -> RelayBells:
        """What wakes the relays of this process."""
        return self._parts.bells

    def _wake_relays(self, subscriptions: Collection[tuple[str, str]]) -> None:
        for subscription in subscriptions:
            self.bells.ring(handoff_destination(*subscription))

    def reject_outlets(self) -> dict[str, Outlet]:
        """Return the sinks that are fed from the outbox, by their destinations there."""
        found: dict[str, dict[str, SinkOfVersion]] = {}
        for definition in self.register_all():
            sink = definition.options.sink
            if sink is not None and is_fed(sink, definition.options.sink_failure):
                of_version = SinkOfVersion(sink, definition.hash, self.values_of(definition))
                found.setdefault(destination_of(definition.name), {})[definition.version] = of_version
        return {destination: RejectOutlet(sinks) for destination, sinks in found.items()}

    def get(self, name: str, version: str) -> AppPipeline | None:
        """Return a pipeline; None if it is not declared here."""
        return self._declared.get((name, version))

    def retry_limit(self, name: str, version: str, step: int) -> int | None:
        """Return the retry limit of a step by its index; None if it is not declared here."""
        pipeline = self.get(name, version)
        steps = () if pipeline is None else pipeline.definition.steps
        return steps[step].options.retry_limit if 0 <= step < len(steps) else None

    def values_of(self, definition: Definition) -> Values:
        """Return the codec of a definition's values."""
        parts = self._parts
        return Values(definition, parts.serializer, parts.settings.max_value_bytes)

    def outlets(self) -> Mapping[tuple[str, str], Outlet]:
        """Return what delivers to destinations outside of the database, by publication and subscriber."""
        return {
            (publication.name, subscriber): outlet
            for pipeline in self._declared.values()
            for publication in pipeline.publications
            for subscriber, outlet in publication.to.items()
        }

    def subscriptions(self) -> list[SubscriptionRow]:
        """Return the subscribers to the publications of this application: its pipelines, and outside destinations."""
        remote = [SubscriptionRow(*destination, REMOTE) for destination in sorted(self.outlets())]
        return [*(one.subscription for one in self.subscribers.of()), *remote]

    def register(self, definition: Definition) -> None:
        """Register the bodies that run a definition's executions and their items."""
        self._check_publications(definition)
        for function, target in (
            (self._execution_body(definition), definition.target),
            (self._part_body(definition), definition.items_target),
        ):
            self._registry.register(TargetFunction(function, stable_name=target))

    def _check_publications(self, definition: Definition) -> None:
        """Raise if a pipeline and one that subscribes to it do not fit together, as far as their types are known."""
        refuse_names(definition.publications, self.subscribers.names)
        for publisher in self._declared.values():
            for publication in publisher.publications:
                for subscriber in self._declared.values():
                    if subscriber.options.subscribe != publication.name:
                        continue
                    if definition.name not in (publisher.name, subscriber.name):
                        continue
                    ends, begins = publisher.ends(), subscriber.ends()
                    if ends is not None and begins is not None:
                        names = (f"{publisher.name}@{publisher.version}", f"{subscriber.name}@{subscriber.version}")
                        check_subscriber(names[0], ends[1], names[1], begins[0], publication.name)

    def register_all(self) -> list[Definition]:
        """Complete all pipelines, so that a worker knows them; no step can be added after that."""
        return [pipeline.definition for pipeline in self._declared.values()]

    def check_sinks(self, *, in_memory: bool) -> None:
        """Raise if an item that a step gives up could be lost: with a sink that is not durable, on a store that is."""
        settings = self._parts.settings
        if in_memory or not settings.production:
            return
        for definition in self.register_all():
            given = definition.options.sink
            sink = sink_of_name(settings.reject_sink) if given is None else given
            steps = [step.name for step in definition.steps if step.options.recover_on_failure]
            if not sink.durable and steps:
                raise ConfigurationError(
                    f"pipeline {definition.name}@{definition.version} may lose items: {', '.join(steps)} has "
                    f"recover_on_failure, and what {type(sink).__name__} is given is not durable; use the store (leave "
                    "sink out) or a sink that is durable, or accept the loss with the setting "
                    "pipelines.production = false"
                )

    def _execution_body(self, definition: Definition) -> Callable[..., Coroutine[Any, Any, Any]]:
        values = self.values_of(definition)

        async def run_execution(given: Any = None) -> Any:
            context = JobContext.current()
            runtime = NodeRuntime.of(context, self._parts)
            state = await runtime.execution(context.claim.job_id)
            if state is None or state.status != OPEN:
                raise ConfigurationError(f"execution {context.job_id} is not open; its row was deleted or changed")
            claimed = ClaimedExecution(runtime, definition, values, context, state)
            await ExecutionRun(claimed, given, self.subscribers).run()

        run_execution.__annotations__ = {"given": definition.input_type, "return": definition.result_type}
        return run_execution

    def _part_body(self, definition: Definition) -> Callable[..., Coroutine[Any, Any, Any]]:
        values = self.values_of(definition)

        async def run_items(execution_id: str, stage: int, segment: int, lo: str) -> None:
            del stage, segment, lo
            context = JobContext.current()
            runtime = NodeRuntime.of(context, self._parts)
            await run_part(runtime, definition, values, context, execution_id)

        return run_items
