"""The circuit breaker: the machine against a plain model of it, and what its settings may be."""

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.domain.circuit import (
    NEVER,
    Circuit,
    CircuitProfile,
    CircuitSettings,
    CircuitState,
    ServiceCall,
    class_names,
)
from windlass.errors import InvalidOptionError

SECOND = 1_000_000
START = 1_800_000_000 * SECOND
CLOSED, OPEN, HALF_OPEN = CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN

FAILED = class_names(ConnectionRefusedError)
DECLINED = class_names(PermissionError)
ODD = class_names(ValueError)


class Model:
    """What J6.1 requires, implemented in the simplest way."""

    def __init__(self, settings: CircuitSettings) -> None:
        self.settings = settings
        self.counted: list[bool] = []
        self.tried: list[bool] = []
        self.opens_at: int | None = None
        self.by_hand = False

    def state(self, now: int) -> CircuitState:
        if self.by_hand:
            return OPEN
        if self.opens_at is None:
            return CLOSED
        return OPEN if now < self.opens_at else HALF_OPEN

    def open(self, now: int) -> None:
        self.close()
        self.opens_at = now + int(self.settings.open_wait * SECOND)

    def close(self) -> None:
        self.counted, self.tried, self.opens_at, self.by_hand = [], [], None, False

    def hold_open(self) -> None:
        self.close()
        self.opens_at, self.by_hand = 0, True

    def too_many(self, outcomes: list[bool]) -> bool:
        return 100 * sum(outcomes) >= self.settings.failure_rate * len(outcomes)

    def call(self, call: ServiceCall, now: int) -> None:
        names = set(call.raised)
        if names & set(self.settings.ignore):
            return
        failed = bool(names) and (not self.settings.record or bool(names & set(self.settings.record)))
        state = self.state(now)
        if state is CLOSED:
            self.counted = [*self.counted, failed][-self.settings.window :]
            if len(self.counted) >= self.settings.minimum_calls and self.too_many(self.counted):
                self.open(now)
        elif state is HALF_OPEN and call.trial:
            self.tried.append(failed)
            to_come = product([False, True], repeat=max(self.settings.trials - len(self.tried), 0))
            verdicts = {self.too_many([*self.tried, *rest]) for rest in to_come}
            if verdicts == {True}:
                self.open(now)
            elif verdicts == {False}:
                self.close()


some_settings = st.builds(
    CircuitSettings,
    failure_rate=st.integers(1, 100).map(float),
    window=st.integers(1, 12),
    minimum_calls=st.integers(1, 6),
    open_wait=st.sampled_from([0.0, 1.0, 30.0]),
    trials=st.integers(1, 6),
    record=st.sampled_from([(), FAILED[:1], ("builtins:OSError",)]),
    ignore=st.sampled_from([(), DECLINED[:1]]),
)
calls = st.builds(ServiceCall, st.sampled_from([(), FAILED, FAILED, DECLINED, ODD]), st.booleans())
moves = st.one_of(
    st.lists(calls, max_size=8),
    st.integers(0, 40 * SECOND),
    st.sampled_from(["open", "close", "hold"]) | st.lists(calls, max_size=8),
)


@given(some_settings, st.lists(moves, max_size=25))
@example(
    CircuitSettings(trials=2, minimum_calls=1),
    [[ServiceCall(FAILED)], 40 * SECOND, [ServiceCall(FAILED, trial=True)] * 2],
)
def test_the_machine_does_what_the_model_does(settings: CircuitSettings, moves: list[Any]):
    """J6.1: window, rate, minimum of calls, wait, trials, early decisions, recorded and ignored errors, by hand."""
    circuit, model, now = Circuit(settings=settings), Model(settings), START
    for move in moves:
        if isinstance(move, int):
            now += move
        elif isinstance(move, list):
            circuit = circuit.after(move, now)
            for call in move:
                model.call(call, now)
        elif move == "open":
            circuit = circuit.closed().opened(now)
            model.open(now)
        elif move == "close":
            circuit = circuit.closed()
            model.close()
        else:
            circuit = circuit.opened_by_hand(now)
            model.hold_open()
        assert circuit.state(now) is model.state(now)
        if circuit.state(now) is CLOSED:
            assert circuit.calls == "".join("01"[failed] for failed in model.counted)
        if circuit.state(now) is HALF_OPEN:
            assert circuit.cap == settings.trials - len(model.tried)


@given(some_settings, st.lists(st.lists(calls, max_size=5), max_size=8))
def test_a_circuit_is_restored_from_what_is_stored(settings: CircuitSettings, batches: list[list[ServiceCall]]):
    """J6.1: its state is shared by all nodes through the store, by versions before and after this one too."""
    circuit = Circuit(settings=settings)
    for batch in batches:
        circuit = circuit.after(batch, START)
        assert Circuit.from_json(circuit.to_json()) == circuit
    newer = {**circuit.to_json(), "of_tomorrow": 1}
    newer["settings"] = {**newer["settings"], "of_tomorrow": 1}
    assert Circuit.from_json(newer) == circuit
    assert Circuit.from_json({}) == Circuit()


def test_several_calls_at_once_are_counted_one_by_one():
    """J6.1: a flush of the worker has many; what comes after the one that opened it changes nothing."""
    settings = CircuitSettings(window=10, minimum_calls=3)
    at_once = Circuit(settings=settings).after([ServiceCall(FAILED)] * 8, START)
    assert at_once == Circuit(settings=settings).opened(START)


@pytest.mark.parametrize(
    ("profile", "rate", "window", "least", "wait", "trials"),
    [
        (CircuitProfile.DEFAULT, 50, 100, 5, 30, 3),
        (CircuitProfile.FAST, 50, 20, 3, 10, 2),
        (CircuitProfile.CRITICAL, 75, 200, 10, 60, 5),
        (CircuitProfile.EXTERNAL_API, 60, 50, 5, 60, 3),
    ],
)
def test_the_profiles_are_those_of_the_specification(
    profile: CircuitProfile, rate: float, window: int, least: int, wait: float, trials: int
):
    """J6.1: failure rate, window, minimum of calls, wait, trials."""
    assert profile.value == CircuitSettings(
        failure_rate=rate, window=window, minimum_calls=least, open_wait=wait, trials=trials
    )
    assert len(CircuitProfile) == 4, "no profile is another one's alias"


def test_no_circuit_opens_before_its_minimum_of_calls():
    """J6.1: one failed call of one is 100 %, and says nothing yet."""
    circuit = Circuit().after([ServiceCall(FAILED)] * 4, START)
    assert circuit.state(START) is CLOSED
    assert circuit.after([ServiceCall(FAILED)], START).state(START) is OPEN


def test_failures_outside_of_the_window_do_not_count():
    """J6.1: the last calls, not all there ever were."""
    settings = CircuitSettings(window=4, minimum_calls=4, failure_rate=50)
    circuit = Circuit(settings=settings).after(
        [ServiceCall(FAILED), ServiceCall(), ServiceCall(), ServiceCall(), ServiceCall(FAILED)], START
    )
    assert circuit.state(START) is CLOSED
    assert circuit.after([ServiceCall(FAILED)], START).state(START) is OPEN


def test_a_late_trial_does_not_prolong_the_wait_of_a_reopened_circuit():
    """J6.1: it says what was known already: one wait, one event."""
    settings = CircuitProfile.FAST.value
    circuit = Circuit(settings=settings).opened(START)
    now = START + 10 * SECOND
    again = circuit.after([ServiceCall(FAILED, trial=True)], now)
    assert again.opens_at == now + 10 * SECOND
    assert again.after([ServiceCall(FAILED, trial=True), ServiceCall(trial=True)], now + SECOND) == again


def test_calls_from_before_it_opened_neither_close_it_nor_keep_it_open():
    """J6.1: only trials decide."""
    circuit = Circuit().opened(START)
    late = START + 60 * SECOND
    assert circuit.after([ServiceCall(), ServiceCall(FAILED)] * 20, late) == circuit


def test_a_manually_opened_circuit_stays_open():
    """J6.1: no time and no call closes what a person opened."""
    circuit = Circuit().opened_by_hand(START)
    assert circuit.state(NEVER - 1) is OPEN
    assert circuit.after([ServiceCall(trial=True)] * 20, START + 10**15) == circuit
    assert circuit.closed().state(START) is CLOSED


@pytest.mark.parametrize(
    ("settings", "raised", "counts"),
    [
        ({}, (), False),
        ({}, ODD, True),
        ({"ignore": [OSError]}, FAILED, None),
        ({"ignore": [ConnectionRefusedError]}, class_names(ConnectionError), True),
        ({"record": [ConnectionError]}, FAILED, True),
        ({"record": [ConnectionError]}, ODD, False),
        ({"record": [OSError], "ignore": [PermissionError]}, DECLINED, None),
        ({"record": ConnectionError}, FAILED, True),
        ({"record": [ConnectionError]}, (), False),
    ],
)
def test_errors_are_recorded_and_ignored_by_class_and_base(
    settings: dict[str, Any], raised: tuple[str, ...], counts: bool | None
):
    """J6.1: ignored comes first and counts for nothing; recorded only: all others went well."""
    assert CircuitProfile.DEFAULT.with_changes(**settings).counts(raised) is counts


def test_durations_of_a_circuit_are_seconds_or_timedelta():
    assert CircuitProfile.FAST.with_changes(open_wait=timedelta(minutes=2)).open_wait == 120.0


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("failure_rate", 0, "failure_rate must be a percentage above 0 and up to 100, got 0"),
        ("failure_rate", 101, "percentage"),
        ("failure_rate", True, "percentage"),
        ("failure_rate", "50", "percentage"),
        ("failure_rate", float("nan"), "percentage"),
        ("window", 0, "window must be a whole number from 1 to 10,000, got 0"),
        ("window", 10_001, "whole number"),
        ("minimum_calls", 2.0, "minimum_calls must be a whole number"),
        ("trials", False, "trials must be a whole number"),
        ("open_wait", -1, "open_wait must not be negative"),
        ("open_wait", "soon", "open_wait must be a number"),
        ("record", [1], "record takes classes of errors, got 1"),
        ("ignore", "ValueError", "ignore takes classes of errors, got 'ValueError'"),
        ("ignore", [int], "ignore takes classes of errors"),
        ("wait", 1, "a circuit has no setting 'wait'; it has failure_rate, window"),
    ],
)
def test_a_bad_setting_is_refused_naming_it(name: str, value: Any, complaint: str):
    """J6.1: where it is written, not when the circuit should have opened."""
    with pytest.raises(InvalidOptionError, match=complaint):
        CircuitProfile.DEFAULT.with_changes(**{name: value})


def test_error_classes_are_named_by_module_and_name():
    """J6.1: an error is known by module and name, with all its bases."""
    assert class_names(ConnectionRefusedError) == (
        "builtins:ConnectionRefusedError",
        "builtins:ConnectionError",
        "builtins:OSError",
        "builtins:Exception",
        "builtins:BaseException",
    )
