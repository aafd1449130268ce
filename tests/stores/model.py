"""A store in plain Python: what should be true after each operation, as simply as possible."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from windlass.domain.job import Claim, Conflict, NewJob, SubmittedJob

LIVE = {"PENDING", "RUNNING"}
ENDS = {"succeeded": "SUCCEEDED", "failed": "FAILED"}
COUNTED = {"succeeded", "failed", "retried"}


@dataclass
class ModelJob:
    """One job: its row, and the outcome of each of its claims by fence."""

    row: NewJob
    due: int
    status: str = "PENDING"
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    node: str | None = None
    superseded_by: str | None = None
    history: dict[int, str] = field(default_factory=dict)

    def seen(self) -> tuple[object, ...]:
        """What the store should show of it."""
        due = self.due if self.status in LIVE else None
        return (self.status, self.fence, self.attempts, self.crashes, self.node, due, self.superseded_by)


class Model:
    """All jobs and keys."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.jobs: dict[str, ModelJob] = {}
        self.keys: dict[str, str] = {}

    @property
    def holders(self) -> dict[str, str]:
        """Business keys are held by live jobs only."""
        live = [job for job in self.jobs.values() if job.status in LIVE and job.row.business_key]
        held = {str(job.row.business_key): job.row.id for job in live}
        assert len(held) == len(live), "two live jobs hold one key"
        return held

    # ------------------------------------------------------------------ submitting

    def submit(self, unit: Sequence[NewJob]) -> list[SubmittedJob] | Conflict:
        """All of the unit, or nothing and the conflict."""
        before = {job.row.id: (job.status, job.superseded_by) for job in self.jobs.values()}, dict(self.keys)
        placed = []
        for row in unit:
            answer = self._place(row)
            if isinstance(answer, Conflict):
                self._restore(*before)
                return answer
            placed.append(answer)
        return placed

    def _place(self, row: NewJob) -> SubmittedJob | Conflict:
        if row.idempotency_key in self.keys:
            return SubmittedJob(self.keys[row.idempotency_key], duplicate=True)
        holder = self.holders.get(row.business_key or "")
        if holder is not None:
            if row.on_conflict == "return_existing":
                return SubmittedJob(holder, duplicate=True)
            old = self.jobs[holder]
            if row.on_conflict == "raise" or old.status == "RUNNING":
                return Conflict(str(row.business_key), holder)
            old.status, old.superseded_by = "CANCELED", row.id
        if row.idempotency_key:
            self.keys[row.idempotency_key] = row.id
        self.jobs[row.id] = ModelJob(row, self.now() + (row.delay_us or 0))
        return SubmittedJob(row.id, supersedes=holder)

    def _restore(self, states: dict[str, tuple[str, str | None]], keys: dict[str, str]) -> None:
        self.jobs = {job_id: self.jobs[job_id] for job_id in states}
        for job_id, (status, superseded_by) in states.items():
            self.jobs[job_id].status, self.jobs[job_id].superseded_by = status, superseded_by
        self.keys = keys

    # ------------------------------------------------------------------ claiming

    def in_order(self, boost: int) -> list[str]:
        """What a claim may take now, best first."""

        def rank(job: ModelJob) -> tuple[int, int, str]:
            raised = (self.now() - job.due) // boost if boost else 0
            return (-(job.row.priority + raised), job.due, job.row.id)

        due = [job for job in self.jobs.values() if job.status == "PENDING" and job.due <= self.now()]
        return [job.row.id for job in sorted(due, key=rank)]

    def claim(self, ids: Sequence[str], node: str) -> list[tuple[str, int]]:
        """Take these; gives ids and fences."""
        for job_id in ids:
            job = self.jobs[job_id]
            job.status, job.node, job.fence = "RUNNING", node, job.fence + 1
        return [(job_id, self.jobs[job_id].fence) for job_id in ids]

    # ------------------------------------------------------------------ completing

    def apply(self, claim: Claim, outcome: str, delay_us: int, *, retried: bool) -> bool:
        """Write the end of an attempt, if its fence still holds."""
        job = self.jobs[claim.job_id]
        written = job.history.get(claim.fence)
        if retried and written not in {None, "lost"}:
            return True
        if job.status != "RUNNING" or job.fence != claim.fence:
            return False
        job.history[claim.fence] = outcome
        job.attempts += outcome in COUNTED
        if outcome in ENDS:
            job.status = ENDS[outcome]
            return True
        if outcome in {"retried", "snoozed"}:
            job.due = self.now() + delay_us
        self._back(job)
        return True

    def _back(self, job: ModelJob) -> None:
        job.status, job.node, job.fence = "PENDING", None, job.fence + 1

    # ------------------------------------------------------------------ the cluster

    def lose(self, nodes: set[str], budget: int) -> set[str]:
        """These nodes are gone; gives the jobs that were given up with them."""
        given_up = set()
        for job in self.jobs.values():
            if job.status == "RUNNING" and job.node in nodes:
                job.history[job.fence] = "lost"
                job.crashes += 1
                if job.crashes > budget:
                    job.status = "FAILED"
                    given_up.add(job.row.id)
                else:
                    self._back(job)
        return given_up
