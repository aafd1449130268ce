"""The verb that sends signals to waiting jobs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from windlass.client.client import Client
from windlass.client.redrive_order import process_owner
from windlass.domain.identity import parse_job_id
from windlass.domain.keys import check_key
from windlass.domain.signal import reads_as_id, sent
from windlass.runtime.failpoints import reached
from windlass.runtime.verbs import Verb, adrive, drive
from windlass.stores.plans import signal_waits
from windlass.submission.signal_texts import stored_signal


class SignalVerbs(Client):
    """`app.signal`."""

    def signal(self, key: UUID | str, value: Any = None) -> int:
        """Release the jobs that wait for a key, or the waiting job of an id; return how many.

        ```python
        app.signal("order:7:approved", approved({"by": "ops"}))
        ```

        `value` is a payload, `approved(payload)` or `rejected(reason, payload)`: `ctx.signal` in the body, which
        decides what a rejection means. A follower in a flow may be signaled before its turn. Where no job waits
        nothing is kept, and the answer is 0.
        """
        return drive(self._signal(key, value))

    async def asignal(self, key: UUID | str, value: Any = None) -> int:
        """Async twin of `signal`."""
        return await adrive(self._signal(key, value))

    def _signal(self, key: UUID | str, value: Any) -> Verb[int]:
        name = None if reads_as_id(key) else check_key(key, "the key of a signal")
        job_id = parse_job_id(key) if name is None else None
        signal = sent(value)
        text = stored_signal(signal, self._reader.serializer, self.settings.jobs.max_payload_bytes)
        yield from self._authorization.check("signal", job_id)
        by_whom = self._authorization.name() or process_owner()
        count = 0
        while True:
            signaled = yield from self._access.run(signal_waits.deliver, text, by_whom, key=name, job_id=job_id)
            if signaled:
                reached("signal.after_commit")
            count += self._publisher.signaled(signaled, signal.outcome, by_whom)
            if len(signaled) < signal_waits.MOST_SIGNALED:
                break
        if count and self._job_verbs.inline is not None:
            yield self._job_verbs.inline.run, self._job_verbs.inline.arun, ()
        return count
