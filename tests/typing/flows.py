"""What type checkers make of flows. Never run: `mypy --strict` and pyright read it, and that is the test."""

from typing import Any, assert_type

from windlass import RESULT, Call, Condition, Flow, Group, JobHandle, JobResult, Windlass, group

app = Windlass("sqlite://")


@app.job
def validate(order: int) -> dict[str, int]:
    return {"id": order}


@app.job
async def charge(order: int) -> str:
    return f"charged {order}"


@app.job
def publish(paths: list[str]) -> int:
    return len(paths)


@app.job
def judge(results: list[JobResult]) -> bool:
    return all(result.succeeded for result in results)


def is_low(found: dict[str, int]) -> bool:
    return found["id"] < 7


async def is_high(found: dict[str, int]) -> bool:
    return not is_low(found)


def has_failed(result: JobResult) -> bool:
    return result.failed


def is_text(value: str) -> bool:
    return bool(value)


@app.job
def tell(result: JobResult) -> None: ...


async def check_branches() -> None:
    call = validate.bind(7)
    flow = call.when_result(is_low, charge.bind(7)).when_result(is_high, charge.bind(7), description="high", priority=1)
    assert_type(flow, Flow[dict[str, int]])
    assert_type(call.then_on_success(charge.bind(1).then(publish)), Flow[dict[str, int]])
    assert_type(call.then_on_failure(tell, description="tell"), Flow[dict[str, int]])
    assert_type(flow.then_on_failure(tell), Flow[dict[str, int]])
    assert_type(call.when(has_failed, tell), Flow[dict[str, int]])
    assert_type(call.choose((is_low, charge.bind(1)), (is_high, tell), otherwise=tell), Flow[dict[str, int]])
    assert_type(call.branch(Condition.result(is_low), tell, "low", priority=-1), Flow[dict[str, int]])
    assert_type(Condition.custom(has_failed), Condition)
    assert_type(await flow.aenqueue(), JobHandle[dict[str, int]])
    assert_type(flow.then(publish).when_result(is_text, tell), Flow[dict[str, int]])


async def check() -> None:
    assert_type(charge.bind(1).await_signal("order:1", timeout=60), Call[str])
    chain = validate.bind(7).then(charge.bind(RESULT["id"])).then(publish)
    assert_type(chain, Flow[dict[str, int]])
    assert_type(chain.enqueue(), JobHandle[dict[str, int]])
    assert_type(await chain.aenqueue(), JobHandle[dict[str, int]])
    assert_type((await chain.aenqueue()).result(timeout=1), dict[str, int])

    members = group(charge.bind(1), validate.bind(2).then(charge.bind(2)), group(charge.bind(3)))
    assert_type(members, Group)
    assert_type(members.then(publish), Flow[int])
    assert_type(members.then(publish.bind(RESULT)), Flow[int])
    assert_type(members.then_always(judge), Flow[bool])
    assert_type(members.then_on_failure(judge), Group)
    assert_type(members.then_on_failure(judge).then(publish).enqueue(), JobHandle[int])
    assert_type(members.then(members), Flow[Any])
    assert_type(validate.bind(1).then(members).then_always(judge), Flow[dict[str, int]])
    assert_type(app.enqueue_many([chain, chain]), list[JobHandle[dict[str, int]]])


def mistakes() -> None:
    validate.bind(7).then(7)  # type: ignore[arg-type]
    group(7)  # type: ignore[arg-type]
    validate.bind(7).when_result(is_text, tell)  # type: ignore[arg-type]
    validate.bind(7).when(is_low, tell)  # type: ignore[arg-type]
    validate.bind(7).choose(is_low, otherwise=tell)  # type: ignore[arg-type]
    validate.bind(7).branch(is_low, tell)  # type: ignore[arg-type]
