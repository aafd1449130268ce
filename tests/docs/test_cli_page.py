"""docs/reference/cli.md says what the commands are."""

import click

from docs.generate_cli import PAGE, commands, parts
from docs.generated_parts import filled, names_in
from windlass.cli.main import COMMANDS


def test_the_page_is_what_the_generator_writes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, parts()) == page, "stale: run `make docs-cli`"


def test_the_page_has_markers_for_every_part():
    assert names_in(PAGE.read_text(encoding="utf-8")) == list(parts())


def test_every_command_and_every_option_of_it_is_there():
    written = parts()["commands"]
    found = commands()
    assert {entry.path for entry in found} >= {f"windlass {name}" for name in COMMANDS}
    for entry in found:
        assert f"# `{entry.path}`\n" in written
        section = written.partition(f"# `{entry.path}`\n")[2].partition("\n##")[0]
        shown = [option for option in entry.command.params if isinstance(option, click.Option) and not option.hidden]
        missing = [option.opts[0] for option in shown if f"`{option.opts[0]}`" not in section]
        assert missing == [], entry.path
