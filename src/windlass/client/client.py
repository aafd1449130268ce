"""The parts that the verbs of an application share."""

from __future__ import annotations

from windlass.client.job_verbs import JobVerbs
from windlass.client.reader import Reader
from windlass.publisher import Publisher
from windlass.settings import Settings
from windlass.spi import Clock
from windlass.stores.access import Access
from windlass.stores.ending import FollowUps
from windlass.submission.authorization import Authorization
from windlass.submission.registry import Registry


class Client:
    """The parts of an application that its verbs share; they are exchanged together, by `app.exchange`."""

    registry: Registry
    settings: Settings
    _access: Access
    _authorization: Authorization
    _publisher: Publisher
    _follow_ups: FollowUps
    _clock: Clock
    _reader: Reader
    _job_verbs: JobVerbs
