"""What type checkers make of names, `include` and `enqueue_by_name`. Never run: `mypy --strict` reads it."""

from typing import Any, assert_type

from windlass import CircuitProfile, CircuitsSettings, JobHandle, Settings, Windlass

settings = Settings(circuits=CircuitsSettings(profile="fast", refresh=0.5))
assert_type(settings.circuits.profile, CircuitProfile)
app = Windlass("sqlite://", include=["shop.tasks"], allow=("shop",), settings=settings)


@app.job(name="billing.charge", aliases=["shop.old:charge"], max_retries=3)
def charge(invoice: int) -> str:
    return f"charged {invoice}"


@app.job(name="billing.mail")
async def mail(to: str) -> int:
    return len(to)


assert_type(charge.enqueue(42), JobHandle[str])
assert_type(mail.enqueue("ann"), JobHandle[int])
assert_type(app.enqueue_by_name("billing.charge", [42], {"note": "x"}, queue="billing"), JobHandle[Any])
charge.delay(42)  # type: ignore[attr-defined]
app.task  # type: ignore[attr-defined]  # noqa: B018
app.enqueue_by_name("billing.charge", quee="billing")  # type: ignore[call-arg]
