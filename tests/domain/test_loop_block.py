"""When an event loop counts as blocked, and what is reported."""

from windlass.domain.loop_block import LONG_BLOCK, QUIET_FOR, Block, LoopBlocks


def test_a_loop_that_answers_in_time_is_not_blocked():
    """J10: no line for what is normal."""
    blocks: LoopBlocks[str] = LoopBlocks(1.0)
    blocks.asked(0.0)
    assert blocks.still_waiting(0.5, "send") is None
    assert blocks.answered(0.99) is None
    assert not blocks.waits


def test_a_block_is_reported_at_its_end_with_its_length_and_the_first_culprit():
    """J10: not what happened to run when the loop came back."""
    blocks: LoopBlocks[str] = LoopBlocks(1.0)
    blocks.asked(10.0)
    assert blocks.still_waiting(10.25, None) is None
    assert blocks.still_waiting(11.25, "send") is None
    assert blocks.still_waiting(13.75, "other") is None
    assert blocks.answered(14.0) == Block(4.0, "send", over=True)


def test_a_block_that_does_not_end_is_reported_once_meanwhile():
    """J10: a deadlock is not silent for ever."""
    blocks: LoopBlocks[str] = LoopBlocks(1.0)
    blocks.asked(0.0)
    assert blocks.still_waiting(0.5, "send") is None
    assert blocks.still_waiting(LONG_BLOCK - 0.1, "send") is None
    assert blocks.still_waiting(LONG_BLOCK, "send") == Block(LONG_BLOCK, "send", over=False)
    assert blocks.still_waiting(LONG_BLOCK + 5, "send") is None
    assert blocks.answered(LONG_BLOCK + 6) == Block(LONG_BLOCK + 6, "send", over=True)


def test_the_same_culprit_is_logged_once_a_minute():
    """J10: a job that blocks every time must not flood the log; another one is logged."""
    blocks: LoopBlocks[str] = LoopBlocks(1.0)

    def block(at: float, culprit: str | None) -> Block[str] | None:
        blocks.asked(at)
        blocks.still_waiting(at + 0.5, culprit)
        blocks.still_waiting(at + 1.5, culprit)
        return blocks.answered(at + 2)

    assert block(0, "send") is not None
    assert block(3, "send") is None
    assert block(6, "charge") is not None
    assert block(9, None) is not None
    assert block(2 + QUIET_FOR, "send") is not None


def test_a_suspended_machine_is_not_a_blocked_loop():
    """J10: the watchdog could not look either."""
    blocks: LoopBlocks[str] = LoopBlocks(1.0)
    blocks.asked(0.0)
    assert blocks.still_waiting(30.0, "send") is None
    assert blocks.answered(30.1) is None
