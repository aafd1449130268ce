"""`windlass worker --reload`: a changed source file starts the worker anew."""

import os
from pathlib import Path

from tests.support.waiting import until
from windlass.cli import source_watch

JOBS = """
def text() -> str:
    return "{}"
"""
SHOP = """
from windlass import Windlass

import words

app = Windlass()


@app.job
def charge(invoice: int) -> str:
    return words.text()
"""


def write(file: Path, text: str) -> None:
    """As an editor does: a new file in place of the old one, and never with the same time stamp."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    os.utime(draft, ns=(before + 2_000_000_000, before + 2_000_000_000))
    draft.rename(file)


def test_a_changed_module_restarts_the_worker(sqlite_commands, shop_on):
    """J10.4: also one that the application's module imports; the file is named."""
    folder = sqlite_commands.folder
    write(folder / "words.py", JOBS.format("old"))
    (folder / "shop.py").write_text(SHOP)
    worker = sqlite_commands.start("worker", "shop:app", "--reload")
    worker.says("^ready")
    shop = shop_on(sqlite_commands.url)
    assert shop.enqueue("charge", 1).result(timeout=90) == "old"
    write(folder / "words.py", JOBS.format("new"))
    worker.says(r"words\.py has changed: restarting")
    until(lambda: worker.printed.count("ready: node") == 2, "the worker to be there again")
    assert shop.enqueue("charge", 1).result(timeout=90) == "new"
    worker.terminate()
    assert worker.exit_code() == 0


def test_a_worker_that_cannot_start_is_started_again_after_the_next_change(sqlite_commands):
    """J10.4: a mistake in the source does not end the session."""
    folder = sqlite_commands.folder
    write(folder / "words.py", "def text(:\n")
    (folder / "shop.py").write_text(SHOP)
    worker = sqlite_commands.start("worker", "shop:app", "--reload")
    worker.says(r"the worker ended with code \d; restarting it when a file below \S+ changes")
    write(folder / "words.py", JOBS.format("mended"))
    worker.says("^ready")
    worker.terminate()
    assert worker.exit_code() == 0


def test_a_signal_ends_a_reloader_that_waits_for_a_change(sqlite_commands):
    (sqlite_commands.folder / "shop.py").write_text("app = 1 / 0\n")
    worker = sqlite_commands.start("worker", "shop:app", "--reload")
    worker.says("restarting it when")
    worker.terminate()
    assert worker.exit_code() == 0


def test_reload_is_for_one_process_that_stays(sqlite_commands):
    for other in (["--processes", "2"], ["--burst"]):
        code, printed = sqlite_commands.run("worker", "shop:app", "--reload", *other)
        assert code == 2
        assert f"leave out {other[0]}" in printed


def test_files_of_installed_packages_and_of_python_are_not_watched():
    files = source_watch.imported_sources()
    assert __file__ in files
    assert not any("site-packages" in file or file == os.__file__ for file in files)


def test_a_file_that_is_missing_for_a_moment_has_not_changed(tmp_path: Path):
    """Editors replace files: what counts is what comes in its place."""
    file = str(tmp_path / "a.py")
    Path(file).write_text("1")
    before = source_watch.stamps([file])
    Path(file).unlink()
    assert source_watch.changed(before, source_watch.stamps([file])) is None
    Path(file).write_text("22")
    assert source_watch.changed(before, source_watch.stamps([file])) == file


def test_the_variable_of_reload_starts_one_worker(sqlite_commands):
    """J10.4: the worker below the reloader inherits the variable, and is no reloader itself."""
    worker = sqlite_commands.start("worker", "shop:app", environ={"WINDLASS_WORKER_RELOAD": "1"})
    worker.says("^ready")
    worker.terminate()
    assert worker.exit_code() == 0
