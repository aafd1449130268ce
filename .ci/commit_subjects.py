"""Check the subjects of commits: imperative, a capital letter, at most 72 characters.

usage: python .ci/commit_subjects.py FILE     the message in a file, as git's commit-msg hook passes it
       python .ci/commit_subjects.py          the last commits of this clone, as `make check` does

Needs Python and git alone. Without git, or outside a clone, there is nothing to check.
"""

import re
import subprocess
import sys
from pathlib import Path

LONGEST = 72
LAST = 20
SINCE = "2026-11-17T06:00:00+00:00"
"""Older subjects were written before this rule. A date and not a commit: a shallow clone does not have the commit."""

WRITTEN_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")
NO_VERBS = {
    "A",
    "All",
    "An",
    "And",
    "For",
    "In",
    "It",
    "More",
    "New",
    "No",
    "Of",
    "On",
    "Some",
    "The",
    "This",
    "To",
    "What",
}
IMPERATIVES = {"Bring", "Bus", "Cling", "Embed", "Focus", "Ping", "Ring", "Shed", "Spring", "String", "Swing", "Wed"}
"""Verbs that look like another form."""
OTHER_FORM = re.compile(r"(?:ing|(?<!e)ed|[^s]s)$")


def objection(subject: str) -> str:
    """Return what is wrong with a subject; an empty text if nothing is."""
    if subject.startswith(WRITTEN_BY_GIT):
        return ""
    if len(subject) > LONGEST:
        return f"{len(subject)} characters; at most {LONGEST}, and the rest into the body"
    first = subject.partition(" ")[0]
    if not re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+)?", first):
        return f"begin with a verb and a capital letter, as in 'Fix …'; this begins with {first!r}"
    if first in NO_VERBS or (first not in IMPERATIVES and OTHER_FORM.search(first)):
        return f"begin with a verb in the imperative, as in 'Add', 'Fix', 'Remove'; this begins with {first!r}"
    if subject.endswith("."):
        return "a subject has no full stop"
    return ""


def of_file(path: Path) -> list[str]:
    """Return the subject in a message that is being written; lines with # are git's."""
    lines = [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [line for line in lines if line][:1]


def of_last_commits() -> list[str]:
    """Return the subjects of the last commits; none where git cannot tell."""
    command = ["git", "log", "--no-merges", f"--max-count={LAST}", f"--since={SINCE}", "--format=%s"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.splitlines()


def main() -> int:
    """Print what is wrong; 1 if something is."""
    subjects = of_file(Path(sys.argv[1])) if len(sys.argv) > 1 else of_last_commits()
    wrong = [f"{subject}\n    {text}" for subject in subjects if (text := objection(subject))]
    for line in wrong:
        sys.stderr.write(f"commit subject: {line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
