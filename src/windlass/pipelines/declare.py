"""The declaration of a pipeline: decorators that add typed steps, until it is first used."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar, Unpack, overload

from windlass.domain.durations import seconds
from windlass.domain.step_options import (
    StepOptions,
    StepOptionsDict,
    WaitOptionsDict,
    check_step_options,
    merged,
)
from windlass.errors import ConfigurationError, InvalidOptionError, SerializationError
from windlass.pipelines.definition import Definition, PipelineStep, StepKind, define
from windlass.pipelines.outlets import Destination
from windlass.pipelines.pipeline_options import (
    MAX_NAME,
    MAX_VERSION,
    PipelineOptionsDict,
    check_label,
    split_options,
)
from windlass.pipelines.publication_declaration import KeyFunction, Publication, make_publication
from windlass.pipelines.step_signature import NOT_GIVEN, NOT_OUTSIDE, Outside, make_step, with_answers
from windlass.pipelines.type_rules import Stream, check_steps, input_type

StepFunction = TypeVar("StepFunction", bound=Callable[..., Any])


class DeclaredStep(NamedTuple):
    """A step as it was declared; its annotations may name classes that come later."""

    name: str
    kind: StepKind
    function: Callable[..., Any]
    options: StepOptions
    outside: Outside = NOT_OUTSIDE


class StepDecorator:
    """Adds steps of one kind to a pipeline; used bare, or with options."""

    def __init__(self, pipeline: "Pipeline", kind: StepKind) -> None:
        self._pipeline = pipeline
        self._kind = kind

    @overload
    def __call__(self, function: StepFunction, /) -> StepFunction: ...

    @overload
    def __call__(
        self, *, name: str | None = None, **options: Unpack[StepOptionsDict]
    ) -> Callable[[StepFunction], StepFunction]: ...

    def __call__(  # type: ignore[misc]  # mypy and Unpack
        self, function: Any = None, /, *, name: str | None = None, **options: Unpack[StepOptionsDict]
    ) -> Any:
        """Add a function as a step, and return it unchanged."""
        if function is not None:
            return self._pipeline.add_step(self._kind, function, name, options)
        return lambda decorated: self._pipeline.add_step(self._kind, decorated, name, options)


class Pipeline:
    """Typed steps in order, under a name and a version.

    ```python
    @orders.step
    def parse(raw: dict) -> Order: ...
    @orders.expand
    def lines(order: Order) -> Iterator[Line]: ...
    @orders.step(retry_limit=5, recover_on_failure=True)
    async def price(line: Line) -> Priced: ...
    @orders.reduce
    def total(priced: Iterable[Priced]) -> Invoice: ...
    ```

    Steps remain plain functions. An item whose type a step does not take passes it unchanged.
    """

    def __init__(
        self, name: str, version: str, *, defaults: StepOptions, **options: Unpack[PipelineOptionsDict]
    ) -> None:
        self.name = check_label(name, "the name of a pipeline", MAX_NAME)
        self.version = check_label(version, f"the version of pipeline {self.name}", MAX_VERSION)
        self.options, of_steps = split_options(options, self._where)
        self.defaults = merged(defaults, of_steps)
        self._declared: list[DeclaredStep] = []
        self._publications: list[Publication] = []
        self._definition: Definition | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        steps = ", ".join(step.name for step in self._declared)
        return f"<{type(self).__name__} {self.name}@{self.version}: {steps or 'no steps'}>"

    @property
    def step(self) -> StepDecorator:
        """Add a step that makes one item of one item."""
        return StepDecorator(self, StepKind.STEP)

    @property
    def expand(self) -> StepDecorator:
        """Add a step that makes many items of one: it yields them, or returns an iterable."""
        return StepDecorator(self, StepKind.EXPAND)

    @property
    def reduce(self) -> StepDecorator:
        """Add a step that makes one item of all: it takes an iterable."""
        return StepDecorator(self, StepKind.REDUCE)

    @property
    def transform(self) -> StepDecorator:
        """Add a step that makes other items of all: it takes an iterable, and yields."""
        return StepDecorator(self, StepKind.TRANSFORM)

    @property
    def tap(self) -> StepDecorator:
        """Add a step that looks at items: they pass on, and what it returns is ignored."""
        return StepDecorator(self, StepKind.TAP)

    def await_external(
        self,
        function: object = None,
        /,
        *,
        timeout: float | timedelta | None = None,
        answer: Any = NOT_GIVEN,
        name: str | None = None,
        **options: Unpack[WaitOptionsDict],
    ) -> Callable[[StepFunction], StepFunction]:
        """Add a step that waits for an answer from outside, which replaces its item.

        ```python
        @orders.await_external(timeout=86_400, answer=Approval)
        def approval(order: Order, ctx: JobContext) -> ApprovalRequest:
            send_mail(order.approver, link=f"https://shop.example/approve?token={ctx.token}")
            return ApprovalRequest(order.id, order.total)
        ```
        Its body sends the request, and its return value is shown with the open wait. Then the execution waits,
        without a thread, a slot or a permit, up to `timeout` seconds from the start of the body. Without `answer` the
        answer has the type of the next step's input.
        """
        if function is not None or timeout is None or not (waits := seconds(timeout, "timeout")):
            raise InvalidOptionError(
                f"{self._where}: await_external must say for how many seconds to wait, e.g. "
                f"@{self.name.replace('-', '_')}.await_external(timeout=3600), got "
                f"{'no timeout' if timeout is None else repr(timeout)}"
            )
        outside = Outside(waits, answer)
        return lambda decorated: self.add_step(StepKind.AWAIT, decorated, name, options, outside)

    @property
    def definition(self) -> Definition:
        """The definition, made at the first use; no step can be added after that."""
        with self._lock:
            if self._definition is None:
                self._definition = self._define()
            return self._definition

    def add_step(
        self,
        kind: StepKind,
        function: StepFunction,
        name: str | None,
        given: StepOptionsDict | WaitOptionsDict,
        outside: Outside = NOT_OUTSIDE,
    ) -> StepFunction:
        """Add a function as the next step, and return it; the decorators call this."""
        named = self._step_name(kind, function, name)
        options = merged(self.defaults, check_step_options(given, f"{self._where}: {kind.value} {named!r}"))
        if self.options.tenant_concurrency is not None and options.resource is not None:
            raise InvalidOptionError(
                f"{self._where}: {kind.value} {named!r} has a resource, and the pipeline has tenant_concurrency; a job "
                "holds one of both: leave one out, or put the step into a pipeline of its own"
            )
        with self._lock:
            self._refuse_late(f"step {named!r}")
            if any(step.name == named for step in self._declared):
                raise ConfigurationError(
                    f"{self._where}: names of steps must be unique, and there is already a step {named!r}; "
                    "rename the function, or give the step another name=..."
                )
            declared = [*self._declared, DeclaredStep(named, kind, function, options, outside)]
            self._check(declared)
            self._declared = declared
        return function

    @property
    def _where(self) -> str:
        return f"pipeline {self.name}@{self.version}"

    def _step_name(self, kind: StepKind, function: object, name: object) -> str:
        example = f"@{self.name.replace('-', '_')}.{kind.value}"
        if isinstance(function, str):
            raise InvalidOptionError(
                f"{self._where}: {kind.value} must be given a function, got {function!r}; "
                f"write {example}(name={function!r})"
            )
        if not callable(function) or isinstance(function, type):
            raise InvalidOptionError(
                f"{self._where}: {kind.value} must be given a function, got {function!r}; write {example} above a def"
            )
        found = getattr(function, "__name__", None) if name is None else name
        if found is None:
            raise InvalidOptionError(
                f"{self._where}: a {kind.value} must have a name, and {function!r} has none; add name='...'"
            )
        return check_label(found, f"{self._where}: the name of a {kind.value}", MAX_NAME)

    def _refuse_late(self, what: str) -> None:
        if self._definition is not None:
            raise ConfigurationError(
                f"{self._where}: {what} must be added before the pipeline is used, but it has been submitted to "
                "or a worker has started, and executions depend on its steps; declare all steps when the module is "
                "imported, or another version"
            )

    def _check(self, declared: list[DeclaredStep]) -> None:
        """Check as many steps as can be resolved now; the others are checked with the definition."""
        steps: list[PipelineStep] = []
        for index, step in enumerate(declared):
            try:
                steps.append(make_step(index, *step, where=self._where))
            except SerializationError as error:
                if not isinstance(error.__cause__, NameError):
                    raise
                break
        check_steps(with_answers(steps), self._where)

    def _define(self) -> Definition:
        if not self._declared:
            raise ConfigurationError(
                f"{self._where} must have at least one step, got none; add one with @{self.name}.step, and import the "
                "module that declares it"
            )
        steps = with_answers([make_step(index, *step, where=self._where) for index, step in enumerate(self._declared)])
        check_steps(steps, self._where)
        return define(self.name, self.version, steps, self.options, self._publications)

    def publish(
        self, name: str, *, key: KeyFunction | None = None, to: Mapping[str, Destination] | None = None
    ) -> None:
        """Hand the last items of every execution over to the pipelines that subscribe, in the commit of its success.

        ```python
        orders.publish("invoices", key=lambda invoice: invoice.id, to={"crm": HttpTarget("https://crm.example/in")})
        billing = app.pipeline("billing", subscribe="invoices", max_in_flight=100)
        ```
        `key` returns the hand-off key of an item: a repeat with the same payload is dropped, one with another payload
        is rejected. Without it the key is the execution's id and the position of the item. `to` names destinations
        outside of the database, and what delivers to each. An item for a subscriber that is slow, paused or refuses it
        stays in the backlog (`app.publications`), and the execution has succeeded all the same.
        """
        made = make_publication(name, key, to, self._where)
        with self._lock:
            self._refuse_late(f"publication {made.name!r}")
            if any(one.name == made.name for one in self._publications):
                raise ConfigurationError(
                    f"{self._where}: it publishes {made.name!r} already; publish under another name"
                )
            self._publications.append(made)

    @property
    def publications(self) -> Sequence[Publication]:
        """What it publishes."""
        return tuple(self._publications)

    def ends(self) -> tuple[Any, Stream] | None:
        """Return the type of its input and the types of its last items; None if they are not known yet."""
        steps: list[PipelineStep] = []
        for index, step in enumerate(tuple(self._declared)):  # without the lock: others ask while they hold their own
            try:
                steps.append(make_step(index, *step, where=self._where))
            except SerializationError:
                return None
        known = with_answers(steps)
        return (input_type(known), check_steps(known, self._where)) if known else None
