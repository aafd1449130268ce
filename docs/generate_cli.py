"""Writes docs/reference/cli.md from the commands themselves: `make docs-cli`, or `python -m docs.generate_cli`."""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from docs.generated_parts import write_page
from windlass.cli.main import main as windlass

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"


class Entry(NamedTuple):
    """One command, with the context it would be called in."""

    command: click.Command
    context: click.Context

    @property
    def path(self) -> str:
        """What one types: `windlass job list`."""
        return self.context.command_path


def commands() -> list[Entry]:
    """Every command, groups before their members, hidden ones left out."""
    return list(_below(windlass, click.Context(windlass, info_name="windlass", **windlass.context_settings)))


def _below(group: click.Group, context: click.Context) -> Iterator[Entry]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        # No terminal to measure: the width must not depend on where this runs.
        own = click.Context(command, info_name=name, parent=context, max_content_width=10_000, terminal_width=10_000)
        yield Entry(command, own)
        if isinstance(command, click.Group):
            yield from _below(command, own)


def parts() -> dict[str, str]:
    """What to write into the page."""
    entries = commands()
    return {"list": _list(entries), "commands": "\n\n".join(_section(entry) for entry in entries)}


def _list(entries: list[Entry]) -> str:
    rows = [
        f"| [`{entry.path}`](#{entry.path.replace(' ', '-')}) | {_first_line(entry.command)} |" for entry in entries
    ]
    return "\n".join(["| command | does |", "|---|---|", *rows])


def _first_line(command: click.Command) -> str:
    return _cell(_text(command.short_help or command.help).partition("\n")[0])


def _section(entry: Entry) -> str:
    level = "##" if entry.context.parent is not None and entry.context.parent.parent is None else "###"
    blocks = [f"{level} `{entry.path}`", _text(entry.command.help)]
    if not isinstance(entry.command, click.Group):
        usage = entry.command.get_usage(entry.context).removeprefix("Usage: ")
        blocks += [f"```text\n{' '.join(usage.split())}\n```", _options(entry)]
    blocks.append(_text(entry.command.epilog))
    return "\n\n".join(block for block in blocks if block)


def _options(entry: Entry) -> str:
    options = [option for option in entry.command.params if isinstance(option, click.Option) and not option.hidden]
    if not options:
        return ""
    rows = [_option(option, entry.context) for option in options]
    return "\n".join(["| option | default | variable | meaning |", "|---|---|---|---|", *rows])


def _option(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    spellings = sorted([*option.opts, *option.secondary_opts], key=lambda name: not name.startswith("--"))
    names = ", ".join(f"`{name}`" for name in spellings)
    metavar = option.make_metavar(context).removesuffix(" RANGE")
    value = "" if option.is_flag or option.count else f" `{_cell(metavar)}`"
    notes = [_text(option.help)]
    notes += [f"({_range(extra['range'])})"] if "range" in extra else []
    notes += ["(required)"] if "required" in extra else []
    default = f"`{extra['default']}`" if "default" in extra else ""
    variables = ", ".join(f"`{name}`" for name in extra.get("envvars", ()))
    return f"| {names}{value} | {_cell(default)} | {variables} | {_cell(' '.join(notes))} |"


def _range(text: str) -> str:
    """`x>=1` as "1 or more", `1<=x<=9` as "1 to 9"; what else click may write, as it is."""
    bounds = re.fullmatch(r"(\d+)<=x<=(\d+)", text)
    if bounds:
        return f"{bounds[1]} to {bounds[2]}"
    least = re.fullmatch(r"x(>=?)(\d+)", text)
    if least:
        return f"{least[2]} or more" if least[1] == ">=" else f"more than {least[2]}"
    return text


def _text(text: str | None) -> str:
    """Help as click shows it: without the marks that keep it from wrapping, without what follows a form feed."""
    shown = inspect.cleandoc(text or "").partition("\f")[0].replace("\b\n", "")
    return re.sub(r"\n{3,}", "\n\n", shown).strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the page."""
    changed = write_page(PAGE, parts())
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {'written' if changed else 'nothing to do'}\n")


if __name__ == "__main__":
    main()
