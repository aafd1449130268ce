"""`windlass job graph --watch`: a flow followed to its end by processes of their own."""

import json
import re
import signal
from importlib import import_module

import pytest

from tests.cli.terminal import Terminal
from windlass import RESULT, JobHandle, group

ALBUM = """
import asyncio
from pathlib import Path

from windlass import DoNotRetry, Windlass

app = Windlass()
folder = Path(__file__).parent


@app.job
async def resize(picture: int) -> int:
    while picture and not (folder / "gate").exists():
        await asyncio.sleep(0.02)
    if picture > 1:
        raise DoNotRetry("not a picture")
    return picture


@app.job
async def publish(pictures: list[int]) -> None:
    pass
"""


@pytest.fixture
def album(commands, shop_on):
    """A worker whose jobs wait for a gate, and a way to enqueue their flow."""
    (commands.folder / "shop.py").write_text(ALBUM)
    commands.run("migrate", "shop:app")
    commands.start("worker", "shop:app").says("^ready")
    shop = shop_on(commands.url)

    def enqueue(*pictures: int) -> JobHandle[object]:
        resize, publish = (getattr(import_module("shop"), name).function for name in ("resize", "publish"))
        members = group(*(shop.app.bind(resize, picture) for picture in pictures))
        return shop.app.bind(resize, 0).then(members).then(shop.app.bind(publish, RESULT)).enqueue()

    return enqueue


def test_people_see_it_change(commands, album):
    handle = album(1, 1)
    screen = Terminal(commands.folder, commands.url, "job", "graph", "--watch", str(handle.id), columns=80)
    screen.shows(r"┢━ group  0/2 succeeded\n┣━ ▶ shop:resize +…\w+  RUNNING")
    (commands.folder / "gate").touch()
    assert screen.exit_code() == 0
    assert re.search(r"┢━ group  2/2 succeeded\n(.*\n){3}✓ shop:publish", screen.text)


def test_watching_ends_when_it_is_interrupted(commands, album):
    """As `job tail` does; the cursor is back."""
    handle = album(1)
    screen = Terminal(commands.folder, commands.url, "job", "graph", "-w", str(handle.id), columns=80)
    screen.shows("RUNNING")
    screen._process.send_signal(signal.SIGINT)
    assert screen.exit_code() == 1
    assert b"\x1b[?25h" in screen._output
    (commands.folder / "gate").touch()


def test_pipes_and_programs_get_what_changes(commands, album):
    handle = album(1, 2)
    lines = commands.start("job", "graph", "--watch", str(handle.id), "-a", "shop:app")
    objects = commands.start("job", "graph", "--watch", "--json", str(handle.id), "-a", "shop:app")
    lines.says("\tRUNNING\t")
    objects.says('"kind":"graph"')
    (commands.folder / "gate").touch()
    assert (lines.exit_code(), objects.exit_code()) == (1, 1)
    output = [json.loads(line) for line in objects.printed.splitlines()]
    assert [one["kind"] for one in output] == ["graph", *["node"] * (len(output) - 1)]
    assert {one["node"]["status"] for one in output[1:]} >= {"SUCCEEDED", "FAILED", "CANCELED"}
    assert lines.printed.splitlines()[-1].endswith("upstream_failed")
