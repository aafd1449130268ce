"""The `windlass` command as a process of its own, in a folder with an application."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.programs import Program

SHOP = """
import asyncio
import logging
import os
from pathlib import Path

from windlass import Windlass

app = Windlass()
folder = Path(__file__).parent


@app.job
def charge(invoice: int) -> str:
    logging.getLogger("shop").info("charging %d", invoice)
    return f"charged {invoice} in {os.getpid()}"


@app.job
async def endless(name: str) -> None:
    (folder / name).touch()
    await asyncio.Event().wait()


@app.job
async def gated(number: int) -> int:
    (folder / f"started-{number}-{os.getpid()}").touch()
    while not (folder / "gate").exists():
        await asyncio.sleep(0.02)
    return os.getpid()
"""


class Command(Program):
    """A running command; what it prints goes to a file."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], environ: Mapping[str, str]) -> None:
        self.output = folder / f"output-{len(list(folder.glob('output-*')))}"
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "windlass", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **environ},
                process_group=0,
            )


class Commands:
    """All commands of one test, in one folder, on one store; none outlives the test."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self._running: list[Command] = []

    def start(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Command:
        command = Command(self.folder, arguments, {"WINDLASS_URL": self.url, **(environ or {})})
        self._running.append(command)
        return command

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run a command to its end; its exit code and what it printed."""
        command = self.start(*arguments, environ=environ)
        return command.exit_code(), command.printed

    def python(self, code: str, *arguments: str) -> str:
        """Run a program in the folder, on the store; what it printed."""
        command = [sys.executable, "-c", code, *arguments]
        environ = {**os.environ, "WINDLASS_URL": self.url}
        return subprocess.check_output(command, cwd=self.folder, env=environ, text=True)

    def close(self) -> None:
        for command in self._running:
            if command.process.poll() is None:
                command.kill()
