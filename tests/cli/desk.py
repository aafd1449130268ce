"""Jobs in every state, made from here, and the command that looks at them: `desk.run("job", "list")`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from windlass import Backoff, DoNotRetry, JobContext, JobHandle, Settings, Windlass

OFFICE = "from windlass import Windlass\n\napp = Windlass(allow=['tests.cli.desk'])\n"


def charge(invoice: int, currency: str = "eur") -> str:
    JobContext.current().log.info("charging %d %s", invoice, currency)
    return f"charged {invoice}"


def decline(invoice: int) -> None:
    raise DoNotRetry(f"card of invoice {invoice} was declined\nby the bank")


def stumble(invoice: int) -> None:
    raise ValueError(f"invoice {invoice} has no address")


def export(rows: int) -> None:
    context = JobContext.current()
    context.progress(rows // 2, rows, "rows written")
    context.log.warning("half of it")
    context.progress(rows, rows)


class Desk:
    """An application on a store, and the command on the same store."""

    def __init__(self, url: str, invoke: Callable[..., Result]) -> None:
        self.url = url
        self.app = Windlass(url, settings=Settings())
        self.app.migrate()
        self.charge = self.app.job(charge)
        self.decline = self.app.job(decline)
        self.stumble = self.app.job(max_retries=2, backoff=Backoff.none())(stumble)
        self.export = self.app.job(export)
        self._invoke = invoke
        (Path.cwd() / "office.py").write_text(OFFICE)

    def work_off(self, *handles: JobHandle[Any]) -> None:
        """Run a worker until these are over."""
        with self.app.worker():
            for handle in handles:
                handle.join(timeout=90)

    def failed(self, count: int = 1, **options: Any) -> list[str]:
        """Dead letters."""
        handles = [self.decline.using(**options).enqueue(number) for number in range(count)]
        self.work_off(*handles)
        return [str(handle.id) for handle in handles]

    def run(self, *arguments: object, stdin: str | None = None, **environ: str) -> Result:
        """Run a command, away from any terminal."""
        named = {"WINDLASS_URL": self.url, "WINDLASS_APP": "office:app", **environ}
        return self._invoke(*map(str, arguments), stdin=stdin, **named)

    def stdout(self, *arguments: object, code: int = 0, **environ: str) -> str:
        """What a command put out; its exit code must be this."""
        result = self.run(*arguments, **environ)
        assert result.exit_code == code, result.output
        return result.stdout

    def read(self, *arguments: object, code: int = 0) -> Any:
        """What a command put out for programs."""
        return json.loads(self.stdout(*arguments, "--json", code=code))

    def drawn(self, *arguments: object, columns: int = 200, code: int = 0) -> str:
        """What a command draws for people."""
        return self.stdout(*arguments, code=code, FORCE_COLOR="1", COLUMNS=str(columns), TERM="xterm")
