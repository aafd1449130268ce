"""The decorator that puts all jobs of a function, or of a class's methods, behind a circuit."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from windlass.domain.keys import check_name

_MARK: Final = "__windlass_circuit__"

T = TypeVar("T")


def circuit_protected(service: str) -> Callable[[T], T]:
    """Put the jobs of a function, or of all methods of a class, behind the circuit of a service.

    ```python
    @circuit_protected("payment-gateway")
    class PaymentService:
        def charge(self, invoice_id: int) -> None: ...
    ```

    `circuit=` of a job or call comes first; a function's own mark comes before that of its class.
    """
    name = check_name(service, "circuit")

    def mark(decorated: T) -> T:
        setattr(getattr(decorated, "__func__", decorated), _MARK, name)
        return decorated

    return mark


def circuit_of(*marked: Any) -> str | None:
    """Return the circuit of the first of these that has the mark."""
    for one in marked:
        name = getattr(one, _MARK, None)
        if isinstance(name, str):
            return name
    return None
