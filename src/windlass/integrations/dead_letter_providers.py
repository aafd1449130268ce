"""Foreign providers of dead letters, by the settings `pipelines.dlq_provider` and `pipelines.dlq_url`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windlass import loggers
from windlass.domain.dead_letter import DeadLetter
from windlass.domain.deliveries import Delivery
from windlass.errors import ConfigurationError, InvalidOptionError
from windlass.failure.dead_letter_records import letter_of_text
from windlass.integrations.sqs import SqsTarget
from windlass.pipelines.outlets import refuse_async, refuse_awaitable
from windlass.settings import PipelinesSettings
from windlass.spi import Outlet

logger = loggers.logger("windlass.dead_letters")


class LogProvider:
    """Writes every dead letter to the logger `windlass.dead_letters`, with its envelope as JSON."""

    def deliver(self, delivery: Delivery, /) -> None:
        """Log a dead letter."""
        letter = letter_of_text(delivery.payload)
        logger.error(
            "%s %s (%s) is a dead letter: %s; first action: %s; envelope: %s",
            *("execution" if letter.definition_hash else "job", letter.execution_id, letter.resource_name),
            *(letter.terminal_reason, letter.first_action, delivery.payload),
        )


class FunctionProvider:
    """Calls a function with every dead letter."""

    def __init__(self, function: Callable[[DeadLetter], object]) -> None:
        self.function = function

    def deliver(self, delivery: Delivery, /) -> None:
        """Call the function."""
        refuse_awaitable(self.function(letter_of_text(delivery.payload)), self.function)


def dead_letter_provider(settings: PipelinesSettings) -> Outlet | None:
    """Return the foreign provider of the settings; None: the store alone. Raises `ConfigurationError`."""
    given: Any = settings.dlq_provider
    if given == "sqs":
        if settings.dlq_url is None:
            raise ConfigurationError(
                'pipelines.dlq_provider = "sqs" needs pipelines.dlq_url, the URL of the queue, e.g. '
                "https://sqs.eu-central-1.amazonaws.com/123456789012/dead-letters"
            )
        return SqsTarget(settings.dlq_url)
    if settings.dlq_url is not None:
        raise ConfigurationError(
            'pipelines.dlq_url is given, but pipelines.dlq_provider is not "sqs", so that nothing would be sent there; '
            'set pipelines.dlq_provider = "sqs", or leave pipelines.dlq_url out'
        )
    if given == "store":
        return None
    if given == "log":
        return LogProvider()
    is_outlet = callable(getattr(given, "deliver", None))
    try:
        refuse_async(given.deliver if is_outlet else given, "pipelines.dlq_provider")
    except InvalidOptionError as error:
        raise ConfigurationError(str(error)) from None
    outlet: Outlet = given if is_outlet else FunctionProvider(given)
    return outlet
