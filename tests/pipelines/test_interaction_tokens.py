"""Tokens of steps that wait outside: signatures, keys, and that none of them gets out."""

import io
import logging
import re
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.facts import rows
from windlass import (
    ConfigurationError,
    InvalidOptionError,
    InvalidTokenError,
    Job,
    JobContext,
    JobDeadLettered,
    JobFailed,
    JobStarted,
    PipelinesSettings,
    Settings,
    Windlass,
)
from windlass.domain.external_wait import WaitKey, read_interaction_id
from windlass.domain.interaction_tokens import TokenContent, content_of, key_of, read, sign
from windlass.domain.item_paths import child
from windlass.testing import drain

OLD, NEW = "o" * 32, "n" * 40
HOUR = 3600
PATHS = st.lists(st.integers(0, 10**9), max_size=3).map(lambda numbers: path_of(*numbers))


def path_of(*numbers: int) -> str:
    path = ""
    for number in numbers:
        path = child(path, number)
    return path


KEYS = st.builds(WaitKey, st.uuids().map(str), st.integers(0, 999), PATHS, st.integers(1, 99))


@given(KEYS, st.integers(0, 2**60))
def test_a_token_contains_the_signed_content(key: WaitKey, deadline: int):
    """P8.1: `wl1.<key id>.<payload>.<mac>`."""
    content = TokenContent(key, deadline)
    found = read(sign(key_of(OLD), content))
    assert found is not None
    assert content_of(found, key_of(OLD)) == content
    assert content_of(found, key_of(NEW)) is None


@given(KEYS, st.integers(0, 400), st.sampled_from("abcXYZ019-_."))
def test_a_changed_token_is_invalid(key: WaitKey, place: int, letter: str):
    """P8.1: whichever of its characters is another one."""
    token = sign(key_of(OLD), TokenContent(key, 7))
    place %= len(token)
    if token[place] == letter:
        return
    found = read(token[:place] + letter + token[place + 1 :])
    assert found is None or found.key_id != key_of(OLD).key_id or content_of(found, key_of(OLD)) is None


@given(KEYS)
def test_an_interaction_id_is_read_back(key: WaitKey):
    """P8.1: the effect key of the step, with `~2` for a second round."""
    assert read_interaction_id(key.interaction_id) == key


def has_no_token() -> str:
    return JobContext.current().token


def app_with(url: str, *keys: str) -> Windlass:
    app = Windlass(url, settings=Settings(pipelines=PipelinesSettings(token_keys=keys)))
    app.migrate()
    orders = app.pipeline("orders")

    @orders.await_external(timeout=HOUR)
    def ask(number: int) -> int:
        return number

    return app


def waiting_token(app: Windlass) -> str:
    next(iter(app._pipelines)).submit(7)
    drain(app)
    (wait,) = app.executions.pending("orders")
    return wait.token


@pytest.fixture
def apps(store_url: str) -> Iterator[Any]:
    opened: list[Windlass] = []

    def open_app(*keys: str) -> Windlass:
        opened.append(app_with(store_url, *keys))
        return opened[-1]

    yield open_app
    for app in opened:
        app.close()


@pytest.mark.parametrize(("signed", "verified"), [((OLD,), (NEW, OLD)), ((), (NEW,)), ((), ())])
def test_a_token_is_valid_under_another_first_key(apps: Any, signed: tuple[str, ...], verified: tuple[str, ...]):
    """P8.1: keys are rotated; one that was made in the store counts where keys are configured later."""
    token = waiting_token(apps(*signed))
    assert not apps(*verified).executions.complete(token, 1).duplicate


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda token: token[:-4], "signature"),
        (lambda token: "nonsense", "form"),
        (lambda token: None if not token else 7, "form"),
        (lambda token: token.replace("wl1", "wl2"), "form"),
        (lambda token: re.sub(r"^wl1\.\w+", "wl1.abc", token), "not known here"),
    ],
)
def test_a_wrong_token_is_refused_without_being_shown(apps: Any, change: Any, why: str):
    """P8.1: the error says what to do; its traceback has no part of the token."""
    app = apps(OLD)
    token = waiting_token(app)
    with pytest.raises(InvalidTokenError, match=r"pending\(\)") as caught:
        app.executions.complete(change(token), 1)
    printed = "".join(traceback.format_exception(caught.value))
    assert why in printed
    assert token[20:60] not in printed


@pytest.mark.parametrize("name", ["interaction_id", "correlation_id"])
def test_a_token_given_as_an_id_is_not_shown(apps: Any, name: str):
    """P8.1: a mistake that is easily made; the error says where tokens go, and is short whatever it was given."""
    app = apps(OLD)
    token = waiting_token(app)
    with pytest.raises(InvalidOptionError, match="pass it as the first argument") as caught:
        app.executions.complete(**{name: token}, answer=1)
    assert token[20:60] not in str(caught.value)
    with pytest.raises(InvalidOptionError) as caught:
        app.executions.complete(**{name: "x" * 1_000_000}, answer=1)
    assert len(str(caught.value)) < 500


def test_a_token_of_removed_keys_is_refused(apps: Any):
    """P8.1: the error names the setting."""
    token = waiting_token(apps(OLD))
    with pytest.raises(InvalidTokenError, match="token_keys"):
        apps(NEW).executions.complete(token, 1)


def test_nodes_that_need_a_key_at_once_make_one(apps: Any, store_url: str):
    """P8.1: race-safe; what one of them signs the others verify."""
    found = [apps() for _ in range(4)]
    tokens = found[0]._pipelines.tokens

    def ready(app: Windlass) -> None:
        app.executions.pending()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ready, found))
    assert tokens is not found[1]._pipelines.tokens
    assert len(rows(store_url, "SELECT key_id FROM windlass_secret")) == 1
    content = TokenContent(WaitKey("x", 1, "", 1), 7)
    assert len({app._pipelines.tokens.sign(content) for app in found}) == 1


def test_tokens_and_keys_appear_in_no_output(apps: Any, store_url: str):
    """P8.1: no repr, log, event, history or dead letter shows them, also where a body puts its own into an error."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    app, seen = apps(OLD), []
    leaky = app.pipeline("leaky", retry_limit=0)

    @leaky.await_external(timeout=HOUR)
    def ask(number: int, ctx: JobContext) -> int:
        seen.append(ctx.token)
        assert ctx.token not in repr(ctx)
        raise ValueError(f"cannot reach https://shop.example/?token={ctx.token} and {ctx.token}")

    events: list[object] = []
    for kind in (JobDeadLettered, JobFailed, JobStarted):
        app.on(kind)(events.append)
    try:
        leaky.submit(7)
        drain(app)
        wait_token = waiting_token(app)
    finally:
        root.removeHandler(handler)
    (letter,) = app.dead_letters.find(kind="execution")
    (wait,) = app.executions.pending("orders")
    shown = [repr(letter), repr(events), repr(wait), repr(app.settings), repr(app._pipelines.tokens), stream.getvalue()]
    tables = ("dead_letter", "attempt", "transition", "execution", "alert", "external_wait", "job", "done", "item")
    shown += [repr(rows(store_url, f"SELECT * FROM windlass_{table}")) for table in tables]
    for text in shown:
        for secret in (seen[0], wait_token, OLD):
            assert secret not in text
            assert secret[-30:] not in text


@pytest.mark.parametrize("keys", [["short"], [OLD, OLD], 7])
def test_bad_keys_are_refused_without_being_shown(keys: Any):
    """P8.1: the error of a setting names it, and not its value."""
    with pytest.raises(ConfigurationError, match=r"pipelines\.token_keys must be .* at least 32 characters") as caught:
        PipelinesSettings(token_keys=keys)
    assert "short" not in str(caught.value)
    assert OLD not in str(caught.value)


def test_keys_are_read_from_a_variable():
    """P8.1: separated by commas."""
    settings = Settings.load(environ={"WINDLASS_PIPELINES__TOKEN_KEYS": f"{NEW},{OLD}"})
    assert tuple(settings.pipelines.token_keys) == (NEW, OLD)


def test_bodies_of_other_steps_have_no_token(apps: Any):
    """P8.1: the error says how a step gets one."""
    app = apps()
    handle = app.job(max_retries=0)(has_no_token).enqueue()
    drain(app)
    assert "await_external" in str(app.get(handle.id).error)


class OnlyTheirs:
    """Lets a principal read, and answer, executions with a correlation id that its sets name; everybody may list."""

    def may(self, principal: object, action: str, job: Job | None) -> bool:
        if principal is None or job is None:
            return True
        assert isinstance(principal, dict)
        return job.correlation_id in principal[action]


def test_principals_that_may_not_read_or_answer_a_wait_get_no_token(sqlite_url: str):
    """P8.1, J6.5: a token is enough to answer wherever it is taken to, so the list gives none away."""
    app = Windlass(sqlite_url, authorizer=OnlyTheirs())
    app.migrate()
    orders = app.pipeline("orders")

    @orders.await_external(timeout=HOUR)
    def ask(number: int) -> int:
        return number

    for number in range(3):
        orders.submit(number, correlation_id=f"order-{number}")
    drain(app)
    with app.acting_as({"get": {"order-0", "order-1"}, "complete": {"order-1"}}):
        waits = {wait.correlation_id: wait.token for wait in app.executions.pending()}
        assert waits.keys() == {"order-0", "order-1"}
        assert waits["order-0"] == ""
        app.executions.complete(waits["order-1"], 1)
        with pytest.raises(InvalidTokenError):
            app.executions.complete(waits["order-0"], 1)
    assert len([wait for wait in app.executions.pending() if wait.token]) == 2
    app.close()
