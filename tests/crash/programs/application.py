"""The application that workers and tests share."""

from collections.abc import Callable
from typing import Any

from tests.crash.programs import bodies
from windlass import Windlass


def make_app(url: str | None, functions: tuple[Callable[..., Any], ...] = bodies.ALL, **options: Any) -> Windlass:
    """An application whose jobs are `functions`; its settings come from the environment unless given."""
    app = Windlass(url, **options)
    for function in functions:
        app.job(function)
    return app
