"""Bodies behind circuits. Module-level, because a local function has no name to store."""

from tests.engine import jobs
from windlass import circuit_protected


class GatewayError(ConnectionError):
    """The gateway is down."""


class CardDeclinedError(GatewayError):
    """The gateway is fine, the card is not."""


BROKEN = [True]
"""Whether the gateway is down just now."""


async def call_gateway(number: int) -> int:
    jobs.seen.append(number)
    if BROKEN[0]:
        raise GatewayError("refused")
    return number


async def decline(number: int) -> None:
    raise CardDeclinedError(str(number))


@circuit_protected("gateway")
def marked(number: int) -> int:
    return number


@circuit_protected("gateway")
class PaymentService:
    """Every job on its methods is behind the circuit."""

    def charge(self, number: int) -> int:
        return number

    @staticmethod
    def rates(number: int) -> int:
        return number

    @classmethod
    def default(cls, number: int) -> int:
        return number

    @circuit_protected("bank")
    def pay_out(self, number: int) -> int:
        return number


class EuropeanService(PaymentService):
    """Inherits the mark."""

    def refund(self, number: int) -> int:
        return number


@circuit_protected("sepa")
class SepaService(PaymentService):
    """Has a mark of its own."""


class PlainService:
    """One of its methods is marked."""

    @circuit_protected("gateway")
    def charge(self, number: int) -> int:
        return number

    def look(self, number: int) -> int:
        return number
