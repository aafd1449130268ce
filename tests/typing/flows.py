"""What type checkers make of flows. Never run: `mypy --strict` and pyright read it, and that is the test."""

from typing import Any, assert_type

from windlass import RESULT, Call, Flow, Group, JobHandle, JobResult, Windlass, group

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
