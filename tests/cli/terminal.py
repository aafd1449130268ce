"""The `windlass` command at a terminal of its own: it draws, and it can be answered."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from tests.support.waiting import until

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command at a terminal so wide."""

    def __init__(self, folder: Path, url: str, *arguments: str, columns: int = 160) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        unset = ("COLUMNS", "FORCE_COLOR", "NO_COLOR")
        environ = {name: value for name, value in os.environ.items() if name not in unset}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "windlass", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**environ, "TERM": "xterm-256color", "WINDLASS_URL": url, "WINDLASS_APP": "shop:app"},
            start_new_session=True,
        )
        os.close(theirs)
        self._output = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """All that was ever on the screen, without colours and moves of the cursor."""
        return _ESCAPES.sub("", self._output.decode(errors="replace")).replace("\r\n", "\n")

    def shows(self, pattern: str) -> None:
        """Wait until something is on the screen."""
        until(lambda: re.search(pattern, self.text), f"{pattern} on the screen")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def exit_code(self, timeout: float = 300.0) -> int:
        """Wait for its end."""
        try:
            code = self._process.wait(timeout)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(90)
            self._reader.join(90)
            os.close(self._ours)
        return code

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # how Linux reports that the other end is closed
                return
            if not data:
                return
            self._output += data
