"""The default error sanitizer: the stored form of an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.growth import grows_less
from windlass.failure.sanitizer import DefaultErrorSanitizer

sanitizer = DefaultErrorSanitizer()


def raised(error: BaseException) -> BaseException:
    """The error with a traceback, as the engine sees it."""
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - whatever was given is wanted back
        return caught


def test_the_seeds_example_comes_out_as_printed_there():
    """J5.3: the seed's JDBC line must come out as printed there."""

    class RuntimeException(Exception):  # noqa: N818 - the seed's name
        pass

    error = RuntimeException("Connection failed: jdbc:mysql://admin:s3cret@db.internal:3306/prod")
    expected = "RuntimeException: Connection failed: jdbc:mysql://[REDACTED]@db.internal:3306/prod"
    assert sanitizer.sanitize(error) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (ValueError(""), "ValueError"),
        (KeyError("name"), "KeyError: 'name'"),
        (ValueError("a", 2), "ValueError: ('a', 2)"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (OSError(2, "No such file", "x.txt"), "FileNotFoundError: [Errno 2] No such file: 'x.txt'"),
        (ValueError("line one\nline two"), "ValueError: line one\nline two"),
    ],
)
def test_the_form_is_class_name_and_message(error: BaseException, expected: str):
    """J5.3: the stored form is `ClassName: message`."""
    assert sanitizer.sanitize(error) == expected


def test_explicit_and_implicit_causes_are_kept():
    """J5.3: the cause chain is kept."""
    try:
        try:
            raise KeyError("password=abc")
        except KeyError as cause:
            raise ValueError("inner") from cause
    except ValueError:
        implicit = raised(RuntimeError("outer"))
    expected = "RuntimeError: outer caused by ValueError: inner caused by KeyError: 'password=[REDACTED]'"
    assert sanitizer.sanitize(implicit) == expected


def test_a_suppressed_context_is_not_shown():
    error = ValueError("shown")
    error.__context__ = KeyError("hidden")
    assert sanitizer.sanitize(error) == "ValueError: shown caused by KeyError: 'hidden'"
    error.__suppress_context__ = True
    assert sanitizer.sanitize(error) == "ValueError: shown"


def test_circular_and_endless_chains_end():
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert sanitizer.sanitize(first) == "ValueError: 1 caused by ValueError: 2"
    top = link = ValueError("0")
    for number in range(1, 1000):
        link.__cause__ = ValueError(str(number))
        link = link.__cause__
    assert sanitizer.sanitize(top).count("caused by") == 5


def test_members_of_a_group_are_named():
    group = ExceptionGroup("two", [ValueError("token=abc"), ExceptionGroup("in", [KeyError("k"), OSError()])])
    expected = "ExceptionGroup: two (2 sub-exceptions) [ValueError: token=[REDACTED]; KeyError: 'k'; OSError]"
    assert sanitizer.sanitize(group) == expected
    many = ExceptionGroup("many", [ValueError(str(number)) for number in range(9)])
    assert sanitizer.sanitize(many).endswith("[ValueError: 0; ValueError: 1; ValueError: 2; …]")


@pytest.mark.parametrize("returned", [None, 3, ZeroDivisionError()])
def test_an_error_that_cannot_be_printed_is_still_sanitised(returned: object):
    class BrokenError(Exception):
        def __str__(self) -> str:
            if isinstance(returned, Exception):
                raise returned
            return returned  # type: ignore[return-value]

    text = sanitizer.sanitize(raised(BrokenError()))
    assert text.startswith("BrokenError: <no message: its __str__ raised ")
    assert "BrokenError" in sanitizer.traceback_tail(raised(BrokenError()))


def test_long_messages_are_cut_with_an_ellipsis():
    """J5.3: 2,000 characters."""
    text = sanitizer.sanitize(ValueError("x" * 5000))
    assert len(text) == 2000
    assert text.startswith("ValueError: xxx")
    assert text.endswith("x…")
    exact = "x" * (2000 - len("ValueError: "))
    assert sanitizer.sanitize(ValueError(exact)) == f"ValueError: {exact}"


def test_secrets_are_redacted_before_the_text_is_cut():
    """J5.3: a secret across the limit is not cut in half and then missed."""
    for padding in range(1900, 2000):
        text = sanitizer.sanitize(ValueError("x" * padding + " postgres://u:hunter2hunter2@db/shop"))
        assert "hunter" not in text


def test_a_long_message_does_not_push_its_cause_out():
    error = RuntimeError("x" * 5000)
    error.__cause__ = KeyError("the real reason")
    text = sanitizer.sanitize(error)
    assert text.endswith("caused by KeyError: 'the real reason'")
    assert len(text) <= 2000
    error.__cause__.__cause__ = ValueError("y" * 5000)
    assert 1900 < len(sanitizer.sanitize(error)) <= 2000
    assert "the real reason" in sanitizer.sanitize(error)


@given(st.lists(st.text(max_size=300), min_size=1, max_size=8), st.integers(100, 400))
def test_the_length_is_held_and_every_class_is_named(messages: list[str], length: int):
    """J5.3: never longer than the limit, class name kept."""
    top = link = ValueError(messages[0])
    for message in messages[1:]:
        link.__cause__ = ValueError(message)
        link = link.__cause__
    text = DefaultErrorSanitizer(max_length=length).sanitize(top)
    assert len(text) <= length
    assert text.startswith("ValueError")


def test_addresses_stay_when_the_switch_is_off():
    """J5.3: e-mail addresses (switch)."""
    error = ValueError("no user bob@example.com")
    assert sanitizer.sanitize(error) == "ValueError: no user [REDACTED]"
    assert DefaultErrorSanitizer(redact_emails=False).sanitize(error) == "ValueError: no user bob@example.com"


def test_characters_that_no_database_stores_are_replaced():
    text = sanitizer.sanitize(ValueError("nul \0, lone surrogate \udc80, fine ü"))
    assert "\0" not in text
    assert text.encode("utf-8").decode("utf-8") == text
    assert text.endswith("fine ü")


@pytest.mark.parametrize("piece", ["a", "a://b:c@ ", "password='x", "token=a ", "x@y.zz ", "\n", "é"])
def test_a_message_of_megabytes_costs_little_more_than_one_of_a_hundred_thousand_characters(piece: str):
    """J5.3: an error message cannot stall a worker, however long it is."""

    def cost(size: int) -> None:
        error = raised(ValueError((piece * size)[:size]))
        assert len(sanitizer.sanitize(error)) <= 2000
        assert len(sanitizer.traceback_tail(error)) <= 4000

    assert grows_less(cost, small=100_000, factor=20, limit=20)


def test_the_traceback_tail_is_redacted_and_ends_with_the_error():
    def connect(password: str) -> None:
        raise ValueError(f"refused password={password}")

    with pytest.raises(ValueError, match="refused") as caught:
        connect(password="hunter2")
    text = sanitizer.traceback_tail(caught.value)
    assert text.startswith("Traceback (most recent call last):")
    assert text.endswith("ValueError: refused password=[REDACTED]")
    assert "in connect" in text
    assert "hunter2" not in text


def test_the_traceback_tail_keeps_the_last_whole_lines():
    def dive(depth: int) -> None:
        if depth == 0:
            raise ValueError("bottom")
        if depth % 2:  # two lines in turn: equal frames in a row are printed once
            dive(depth - 1)
        else:
            dive(depth - 1)

    with pytest.raises(ValueError, match="bottom") as caught:
        dive(200)
    text = sanitizer.traceback_tail(caught.value, limit=500)
    lines = text.splitlines()
    assert len(text) <= 500
    assert lines[0] == "…"
    assert lines[1].startswith("  ")
    assert lines[-1] == "ValueError: bottom"


def test_an_error_without_a_traceback_has_a_tail_too():
    assert sanitizer.traceback_tail(ValueError("never raised")) == "ValueError: never raised"


def test_an_error_whose_traceback_cannot_be_printed_has_its_text_for_a_tail():
    error = SyntaxError("token=abc", ("x.py", 1, 1, 5))  # type: ignore[arg-type]  # a line of source that is no text
    assert sanitizer.traceback_tail(error).startswith("SyntaxError: token=[REDACTED]")


def test_a_long_traceback_is_redacted_before_it_is_cut():
    """J5.3: a key whose beginning would be cut off is not left in what is kept."""
    lines = "\n".join(f"SECRET{number:03}{'A' * 54}" for number in range(25))
    key = f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"
    error = raised(ValueError("bad bundle:\n" + key * 70 + "x" * 400))
    assert "SECRET" not in sanitizer.traceback_tail(error)


def test_a_traceback_that_lost_its_beginning_is_not_kept():
    """J5.3: it may begin inside a secret; the message, which is cut at its end, is kept."""
    hidden = raised(ValueError(f'password = """{"correct horse " * 10_000}"""'))
    assert "horse" not in sanitizer.traceback_tail(hidden)
    many = raised(ExceptionGroup("many", [ValueError(f"number {number} " * 1_000) for number in range(15)]))
    assert sanitizer.traceback_tail(many) == sanitizer.sanitize(many)


def test_a_secret_in_the_name_of_a_class_is_redacted():
    """J5.3: classes that are made at run time may be called anything."""
    kind: type[Exception] = type("LoginFailed_password=hunter2", (Exception,), {})
    text = sanitizer.sanitize(raised(kind("no")))
    assert text == "LoginFailed_password=[REDACTED]: no"
    group = ExceptionGroup("several", [kind("no")])
    assert "hunter2" not in sanitizer.sanitize(group)
    assert "hunter2" not in sanitizer.traceback_tail(raised(group))
