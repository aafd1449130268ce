"""The wire between a worker and the processes that run its jobs: what goes in comes out, whole."""

import logging
from pathlib import Path
from typing import Any

import pytest

from windlass.domain.job import Claim, Payload
from windlass.runtime.logcontext import LogFields
from windlass.runtime.processes import log_records
from windlass.runtime.processes.messages import (
    ContextCall,
    LogLine,
    Ready,
    Returned,
    Run,
    Snoozed,
    Start,
    Unframer,
    decode_from_process,
    decode_to_process,
    framed,
)

CLAIM = Claim("0190", 3, "default", "shop:charge", 1, 0, 2, 5, 6)
PAYLOAD = Payload('[[1,"漢字"],{}]', None, '{"a":1}', "x,y", "order:7", None, 5)
TO = [Start(["shop.py"], "shop:app", False, True, 1, 2, {"": 30}), Run(CLAIM, PAYLOAD, "node-1", {"": 10}, True)]
FROM = [Ready(), LogLine({"msg": "hi"}), ContextCall("progress", [1, None, "x"]), Returned("1", None), Snoozed(0.5)]
FIELDS = LogFields("job-1", "node-1", 2)


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_messages_come_out_as_they_went_in_however_they_are_cut(size: int):
    """J4.2: a stream has no message boundaries of its own."""
    pairs: list[tuple[list[Any], Any]] = [(TO, decode_to_process), (FROM, decode_from_process)]
    for messages, decode in pairs:
        stream = b"".join(framed(message) for message in messages)
        unframer = Unframer()
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert [decode(text) for piece in pieces for text in unframer.feed(piece)] == messages


def test_an_invalid_message_is_refused_before_it_fills_the_memory():
    """J4.2: a body may write into descriptors that are not its own."""
    with pytest.raises(ValueError, match="a message of"):
        list(Unframer().feed(b"GET / HTTP/1.1\r\n"))


class Unprintable:
    def __str__(self) -> str:
        raise ZeroDivisionError


def line_of(msg: object, *args: Any, **extra: Any) -> dict[str, Any]:
    record = logging.getLogger("shop").makeRecord("shop", 20, "f.py", 7, msg, args, None, "charge", extra)
    message = decode_from_process(framed(log_records.line_of(record, FIELDS))[4:])
    assert isinstance(message, LogLine)
    return message.record


def test_a_log_record_travels_with_all_that_formatters_use():
    """J4.1: name, level, place, time, message and extras; and the job it belongs to."""
    line = line_of("%s of %d", "one", 2, order=7, path=Path("x"), odd="caf\udce9")
    record = logging.makeLogRecord(line)
    assert (record.name, record.levelname, record.getMessage()) == ("shop", "INFO", "one of 2")
    assert (record.pathname, record.lineno, record.funcName) == ("f.py", 7, "charge")
    assert (line["order"], line["path"], line["odd"]) == (7, "x", "caf?")
    assert (line["job_id"], line["node_id"], line["attempt"]) == FIELDS


def test_a_line_that_cannot_be_printed_is_not_lost():
    """J4.1: the rest of it arrives."""
    assert line_of("%d", "no number")["msg"] == "<not printable: TypeError>"
    assert line_of("fine", thing=Unprintable())["thing"] == "<not printable: ZeroDivisionError>"
