"""A service that fails twice, an effect that happens once, and an error that is not worth a retry.

python retries.py            # prints (the log of the failures goes to standard error):

    attempt 1: the bank is busy
    attempt 2: the bank is busy
    attempt 3: paid
    history: retried, retried, succeeded; keys that the bank saw: 1
    a wrong card: FAILED after 1 attempt (non_retryable)
"""

from windlass import Backoff, DoNotRetry, JobContext, Windlass

jobs = Windlass("sqlite:///payments.db")
keys: set[str] = set()


@jobs.job(max_retries=5, backoff=Backoff.exponential(0.01))
def charge(order: int, ctx: JobContext) -> str:
    """Charge an order; `ctx` is filled in where the job runs."""
    keys.add(ctx.effect_key)  # the same for every attempt: a bank that has seen it does not charge twice
    answer = "paid" if ctx.attempt == 3 else "the bank is busy"
    print(f"attempt {ctx.attempt}: {answer}")
    if answer != "paid":
        raise ConnectionError(answer)
    return f"order {order} is {answer}"


@jobs.job(max_retries=5)
def check_card(number: str) -> None:
    """Fail for good: the card would be as wrong the next time."""
    raise DoNotRetry(f"card {number[:4]} … is not valid")


def main() -> None:
    with jobs.worker():
        paid, wrong = charge.enqueue(42), check_card.enqueue("4000 0000")
        paid.result(timeout=30)
        status = wrong.join(timeout=30)
    outcomes = ", ".join(attempt.outcome for attempt in jobs.history(paid.id))
    print(f"history: {outcomes}; keys that the bank saw: {len(keys)}")
    failed = jobs.get(wrong.id)
    print(f"a wrong card: {status.value} after {failed.attempts} attempt ({failed.reason})")
    jobs.close()


if __name__ == "__main__":
    main()
