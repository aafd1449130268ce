"""Options of a job: checks, merging, defaults."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.backoff import Backoff
from windlass.domain.options import UNSET, JobOptions, JobOptionsDict, ResolvedOptions, Unset
from windlass.domain.priority import Priority
from windlass.errors import InvalidOptionError

MOMENT = datetime(2030, 1, 1, 12, tzinfo=UTC)
NAMES = [option.name for option in dataclasses.fields(JobOptions)]


class Connection:
    """Recognized by its name, like those of libraries that the domain does not import."""

    __module__ = "sqlite3"


keys = st.text("abc:-", min_size=1, max_size=9)
good: dict[str, st.SearchStrategy[Any]] = {
    "priority": st.integers(0, 9),
    "max_retries": st.integers(0, 1000),
    "backoff": st.sampled_from([Backoff.none(), Backoff.fixed(1), Backoff.exponential(1, jitter=0.5)]),
    "retry_on": st.sampled_from([None, (ConnectionError,), (OSError, KeyError)]),
    "give_up_on": st.sampled_from([None, (), (ValueError,)]),
    "timeout": st.one_of(st.none(), st.floats(0.001, 1e6)),
    "queue": keys,
    "tags": st.lists(keys),
    "params": st.dictionaries(keys, st.integers()),
    "correlation_id": st.one_of(st.none(), keys),
    "idempotency_key": st.one_of(st.none(), keys),
    "business_key": st.one_of(st.none(), keys),
    "on_conflict": st.sampled_from(["raise", "return_existing", "replace"]),
    "resource": st.one_of(st.none(), keys),
    "resource_key": st.none(),
    "circuit": st.one_of(st.none(), keys),
    "executor": st.sampled_from([None, "async", "thread"]),
    "encrypted": st.just(False),
    "on_success": st.sampled_from([None, len]),
    "on_failure": st.sampled_from([None, print]),
    "expires": st.one_of(st.none(), st.floats(2e6, 3e6)),
    "connection": st.sampled_from([None, Connection()]),
}
whens: dict[str, st.SearchStrategy[Any]] = {
    "delay": st.one_of(st.none(), st.floats(0, 1e6)),
    "run_at": st.one_of(st.none(), st.datetimes(datetime(2000, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
}
plain = st.fixed_dictionaries({}, optional=good)
timed = st.one_of(*(st.fixed_dictionaries({}, optional={name: when}) for name, when in whens.items()))
given_options = st.builds(lambda some, when: {**some, **when}, plain, timed)
options = given_options.map(lambda values: JobOptions.make(**values))


def set_names(made: JobOptions) -> set[str]:
    return {name for name in NAMES if getattr(made, name) is not UNSET}


def make_one(name: str, value: Any) -> JobOptions:
    return JobOptions.make(**{name: value})


def test_the_strategies_of_this_file_know_every_option():
    assert {*good, *whens} == set(NAMES) == set(JobOptionsDict.__annotations__)
    assert set(NAMES) - {"connection"} == {option.name for option in dataclasses.fields(ResolvedOptions)}


class TestMake:
    def test_options_are_unset_by_default(self):
        assert JobOptions.make() == JobOptions()
        assert set_names(JobOptions.make()) == set()

    @given(given_options)
    def test_exactly_what_was_given_is_set(self, values):
        assert set_names(JobOptions.make(**values)) == set(values)

    def test_values_take_their_plain_form(self):
        made = JobOptions.make(
            priority=Priority.HIGH,
            timeout=timedelta(minutes=1),
            delay=timedelta(seconds=5),
            tags=["A", " a "],
            params={"x": 1},
        )
        assert (made.priority, made.timeout, made.delay, made.tags, made.params) == (3, 60.0, 5.0, ("a",), {"x": 1})
        assert type(made.priority) is int

    def test_run_at_is_kept_in_utc(self):
        made = JobOptions.make(run_at=MOMENT.astimezone(timezone(timedelta(hours=5))))
        assert made.run_at == MOMENT
        assert isinstance(made.run_at, datetime)
        assert made.run_at.tzinfo is UTC

    def test_none_is_not_unset(self):
        made = JobOptions.make(timeout=None, business_key=None)
        assert made.timeout is None
        assert made.business_key is None
        assert set_names(made) == {"timeout", "business_key"}

    def test_unset_may_be_passed_on(self):
        passed_on: dict[str, Any] = {"queue": UNSET, "delay": UNSET, "run_at": MOMENT}
        assert JobOptions.make(**passed_on) == JobOptions.make(run_at=MOMENT)

    @pytest.mark.parametrize(
        ("name", "suggestion"), [("max_retry", "max_retries"), ("tag", "tags"), ("Queue", "queue"), ("run_a", "run_at")]
    )
    def test_an_unknown_name_gets_a_suggestion(self, name, suggestion):
        with pytest.raises(InvalidOptionError) as refused:
            make_one(name, 1)
        assert str(refused.value) == f"unknown option '{name}'; did you mean '{suggestion}'?"

    def test_one_exception_class_or_any_number_of_them_is_a_tuple(self):
        """J5.1: what is not iterable, and a class whose metaclass is, are taken as one."""
        made = JobOptions.make(retry_on=ConnectionError, give_up_on=iter([KeyError, KeyboardInterrupt]))
        assert (made.retry_on, made.give_up_on) == ((ConnectionError,), (KeyError, KeyboardInterrupt))
        assert JobOptions.make(give_up_on=[]).give_up_on == ()

    def test_an_unknown_name_like_no_other_gets_the_list(self):
        with pytest.raises(InvalidOptionError, match="unknown option 'zzz'; the options are priority, max_retries, "):
            make_one("zzz", 1)

    @pytest.mark.parametrize(
        ("name", "value", "complaint"),
        [
            ("priority", 10, "priority must be"),
            ("priority", True, "priority must be"),
            ("max_retries", -1, "max_retries must be an integer from 0 to 1000, got -1"),
            ("max_retries", 1001, "max_retries must be"),
            ("max_retries", True, "max_retries must be"),
            ("max_retries", 3.0, "max_retries must be"),
            ("max_retries", None, "max_retries must be"),
            ("backoff", 5, r"backoff must be a Backoff, got 5; write Backoff\.fixed\(5\)"),
            ("backoff", "exponential", r"write Backoff\.exponential\(1\)"),
            ("backoff", None, r"Backoff\.none\(\)"),
            (
                "retry_on",
                (),
                r"retry_on must name at least one exception class, got \(\); retry_on=None retries after any",
            ),
            ("retry_on", "ConnectionError", "retry_on must be an exception class or several, .*got 'ConnectionError'"),
            ("retry_on", (ValueError, "x"), "got 'x'"),
            ("retry_on", ValueError("x"), r"got ValueError\('x'\); write the class, ValueError"),
            ("retry_on", (int,), "got <class 'int'>"),
            ("give_up_on", 7, "give_up_on must be an exception class or several"),
            ("give_up_on", [KeyError()], r"got KeyError\(\); write the class, KeyError"),
            ("timeout", 0, "timeout must be more than 0 seconds, got 0; timeout=None means no timeout"),
            ("timeout", -1, "timeout must not be negative"),
            ("timeout", "5", "timeout must be a number"),
            ("delay", -1, "delay must not be negative"),
            ("delay", True, "delay must be a number"),
            ("run_at", datetime(2030, 1, 1), "run_at must have a time zone"),  # noqa: DTZ001 - the point
            ("run_at", 1_700_000_000, "run_at must be an aware datetime.*use delay"),
            ("run_at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), "between the years 1 and 9999"),
            ("expires", 0, "expires must be more than 0 seconds, got 0; expires=None means never"),
            ("expires", -1, "expires must not be negative"),
            ("expires", "soon", "expires must be a number"),
            ("expires", datetime(2030, 1, 1), "expires must have a time zone"),  # noqa: DTZ001 - the point
            ("queue", "my queue", "queue must be"),
            ("queue", None, "queue must be"),
            ("tags", "billing", "write tags="),
            ("params", [1], "params must be a mapping"),
            ("correlation_id", "", "correlation_id must not be empty"),
            ("idempotency_key", 7, "idempotency_key must be a str"),
            ("business_key", "x" * 256, "business_key must have at most 255"),
            ("on_conflict", "ignore", "on_conflict must be 'raise', 'return_existing' or 'replace', got 'ignore'"),
            ("on_conflict", None, "on_conflict must be"),
            ("on_conflict", ["raise"], "on_conflict must be"),
            ("resource", "my stripe", "resource must be 1 to 64 characters.*did you mean 'my-stripe'"),
            ("resource", 7, "resource must be 1 to 64 characters"),
            ("resource", "a/b", "resource must be"),
            ("resource_key", "", "resource_key must not be empty"),
            ("resource_key", "x" * 256, "resource_key must have at most 255"),
            ("resource_key", "a\nb", "resource_key must be printable"),
            ("circuit", "payment gateway", "circuit must be 1 to 64 characters.*did you mean 'payment-gateway'"),
            ("circuit", "", "circuit must be"),
            (
                "encrypted",
                True,
                "encrypted=True: this version cannot encrypt payloads yet, and stores nothing in plain",
            ),
            ("encrypted", None, "encrypted must be True or False, got None"),
            ("encrypted", 1, "encrypted must be True or False, got 1"),
            ("executor", "fiber", "executor must be 'async', 'thread' or 'process', got 'fiber'$"),
        ],
    )
    def test_a_bad_value_is_refused_naming_its_option(self, name, value, complaint):
        """J1.6: limits are clear errors at enqueue."""
        with pytest.raises(InvalidOptionError, match=complaint):
            make_one(name, value)

    def test_delay_with_run_at_is_refused(self):
        with pytest.raises(InvalidOptionError, match="delay or run_at, not both: got delay=5 and run_at="):
            JobOptions.make(delay=5, run_at=MOMENT)

    def test_delay_with_run_at_none_is_no_conflict(self):
        assert JobOptions.make(delay=5, run_at=None).delay == 5

    def test_params_are_a_copy(self):
        params = {"x": 1}
        made = JobOptions.make(params=params)
        params["x"] = 2
        assert made.params == {"x": 1}


class TestMerged:
    @given(options, options)
    def test_overriding_options_win_and_the_others_are_kept(self, under, over):
        merged = under.merged(over)
        for name in good:
            expected = getattr(over, name)
            assert getattr(merged, name) == (getattr(under, name) if expected is UNSET else expected)

    @given(options, options)
    def test_delay_and_run_at_are_taken_together_from_one_side(self, under, over):
        merged = under.merged(over)
        source = under if {"delay", "run_at"}.isdisjoint(set_names(over)) else over
        assert (merged.delay, merged.run_at) == (source.delay, source.run_at)

    @given(options, options, options)
    def test_merging_is_associative(self, one, two, three):
        assert one.merged(two).merged(three) == one.merged(two.merged(three))

    @given(options)
    def test_merging_unset_options_changes_nothing(self, made):
        assert made.merged(JobOptions()) == made
        assert JobOptions().merged(made) == made

    def test_delay_replaces_run_at_and_the_other_way_round(self):
        fixed, later = JobOptions.make(run_at=MOMENT), JobOptions.make(delay=5)
        assert fixed.merged(later) == later
        assert later.merged(fixed) == fixed

    def test_delay_none_removes_a_run_at(self):
        assert JobOptions.make(run_at=MOMENT).merged(JobOptions.make(delay=None)).resolved().run_at is None

    def test_none_removes_a_key_or_a_timeout(self):
        under = JobOptions.make(business_key="k", timeout=5)
        merged = under.merged(JobOptions.make(business_key=None, timeout=None))
        assert merged.business_key is None
        assert merged.timeout is None


@pytest.mark.parametrize("name", ["name", "aliases"])
def test_names_belong_on_the_decorator(name: str):
    """J1.8: one call cannot have another name."""
    with pytest.raises(InvalidOptionError, match=f"{name} belongs on the decorator"):
        JobOptions.make(**{name: "x"})  # type: ignore[arg-type]


class TestResolved:
    def test_the_defaults_are_those_of_the_specification(self):
        """J1.3: NORMAL. J5.1: no retries. J5.2: no backoff. And the queue is `default`."""
        resolved = JobOptions().resolved()
        assert dataclasses.asdict(resolved) == {
            "priority": 2,
            "max_retries": 0,
            "backoff": dataclasses.asdict(Backoff.none()),
            "retry_on": None,
            "give_up_on": None,
            "timeout": UNSET,
            "delay": 0.0,
            "run_at": None,
            "expires": None,
            "queue": "default",
            "tags": (),
            "params": {},
            "correlation_id": None,
            "idempotency_key": None,
            "business_key": None,
            "on_conflict": "raise",
            "resource": None,
            "resource_key": None,
            "circuit": None,
            "executor": None,
            "encrypted": False,
            "on_success": None,
            "on_failure": None,
        }

    @pytest.mark.parametrize(
        "given",
        [
            {"delay": 60, "expires": 60},
            {"delay": timedelta(minutes=2), "expires": timedelta(minutes=1)},
            {"run_at": MOMENT, "expires": MOMENT},
        ],
    )
    def test_an_expiry_before_the_due_time_is_refused(self, given):
        """J1.9: given together, or on the job and on the call."""
        with pytest.raises(InvalidOptionError, match=r"expires must come after (delay|run_at), or the"):
            JobOptions.make(**given).resolved()

    def test_an_expiry_may_go_by_another_clock_than_the_due_time(self):
        """J1.9: whether seconds from the enqueue are before a moment is not known here."""
        assert JobOptions.make(run_at=MOMENT, expires=60).resolved().expires == 60
        assert JobOptions.make(delay=60, expires=MOMENT).resolved().expires == MOMENT
        assert JobOptions.make(expires=60).merged(JobOptions.make(expires=None)).resolved().expires is None

    def test_a_resource_key_needs_its_resource(self):
        """J6.2: given apart, on the job and on the call, they belong together."""
        with pytest.raises(InvalidOptionError, match="resource_key needs a resource, got resource_key='acme' alone"):
            JobOptions.make(resource_key="acme").resolved()
        under = JobOptions.make(resource="stripe", circuit="gateway")
        merged = under.merged(JobOptions.make(resource_key="acme")).resolved()
        assert (merged.resource, merged.resource_key, merged.circuit) == ("stripe", "acme", "gateway")
        with pytest.raises(InvalidOptionError, match="resource_key needs a resource"):
            under.merged(JobOptions.make(resource=None, resource_key="acme")).resolved()

    @given(options)
    def test_set_options_are_resolved_and_only_the_timeout_can_be_unset(self, made):
        resolved = made.resolved()
        for name in set_names(made) - {"delay", "connection"}:
            assert getattr(resolved, name) == getattr(made, name)
        assert resolved.delay == (made.delay if isinstance(made.delay, float) else 0.0)
        assert all(getattr(resolved, name) is not UNSET for name in NAMES if name not in ("timeout", "connection"))

    def test_a_connection_is_no_part_of_what_is_stored(self):
        """api.md Options: it serves one submission; neither is it printed, for it may show where it leads."""
        made = JobOptions.make(connection=Connection(), max_retries=3)
        assert made.resolved() == JobOptions.make(max_retries=3).resolved()
        assert "onnection" not in repr(made)

    def test_an_unset_timeout_differs_from_none(self):
        """The setting decides, while None means none."""
        assert JobOptions().resolved().timeout is UNSET
        assert JobOptions.make(timeout=None).resolved().timeout is None


def test_the_sentinel_is_one_value_that_prints_its_name_and_narrows():
    assert repr(UNSET) == "UNSET"
    assert list(Unset) == [UNSET]
    made = JobOptions.make(priority=4)
    if made.priority is not UNSET:
        number: int = made.priority  # type checkers read this line
        assert number == 4


def test_options_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        JobOptions().queue = "x"  # type: ignore[misc]
