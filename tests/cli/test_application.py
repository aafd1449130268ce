"""Finding the application, and the errors when it is not found."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from windlass.cli.main import COMMANDS, main

APP = "from windlass import Windlass\n\napp = Windlass()\nnumber = 7\n"


@pytest.fixture(autouse=True)
def programs(invoke) -> Path:
    """Applications in the current folder."""
    here = Path.cwd()
    (here / "shop.py").write_text(APP)
    (here / "package").mkdir()
    (here / "package" / "__init__.py").touch()
    (here / "package" / "store.py").write_text(APP)
    return here


@pytest.mark.parametrize("place", ["shop:app", "package.store:app"])
def test_the_app_is_the_first_argument(invoke, place):
    assert invoke("migrate", place).exit_code == 0


@pytest.mark.parametrize("option", ["--app", "-a"])
def test_the_app_is_an_option(invoke, option):
    assert invoke("migrate", option, "shop:app").exit_code == 0


def test_the_app_is_a_variable(invoke):
    assert invoke("migrate", WINDLASS_APP="shop:app").exit_code == 0


def test_the_argument_wins_over_the_variable(invoke):
    assert invoke("migrate", "shop:app", WINDLASS_APP="nothing:app").exit_code == 0


def test_two_different_apps_are_refused(invoke):
    result = invoke("migrate", "shop:app", "--app", "package.store:app")
    assert result.exit_code == 2
    assert "two applications given: shop:app and --app package.store:app" in result.output


@pytest.mark.parametrize("place", ["shop", "shop.app", "shop.py", "./shop.py:app", "shop/app"])
def test_a_wrong_form_is_answered_with_the_right_one(invoke, place):
    result = invoke("worker", place)
    assert result.exit_code == 2
    assert "did you mean shop:app?" in result.output


def test_a_module_without_an_attribute_is_answered_with_the_applications_in_it(invoke, programs):
    """J10.1: `windlass worker package.store` names what it finds there, in a package too."""
    result = invoke("worker", "package.store")
    assert result.exit_code == 2
    assert "got 'package.store'; did you mean package.store:app?" in result.output
    (programs / "package" / "two.py").write_text("from windlass import Windlass\na = Windlass()\nb = Windlass()\n")
    assert "did you mean package.two:a or package.two:b?" in invoke("worker", "package.two").output


def test_a_module_that_cannot_be_imported_is_answered_with_the_form(invoke, programs):
    """J10.1: what it holds is not known; the error of its import comes once the form is right."""
    (programs / "package" / "broken.py").write_text("raise SystemExit(3)\n")
    result = invoke("worker", "package.broken")
    assert result.exit_code == 2
    assert "expected an application as module:attribute" in result.output


def test_no_app_is_answered_with_what_is_here(invoke):
    result = invoke("worker")
    assert result.exit_code == 2
    assert "WINDLASS_APP" in result.output
    assert "did you mean shop:app?" in result.output


def test_an_unknown_module_is_answered_with_a_likely_one(invoke):
    result = invoke("worker", "shp:app")
    assert result.exit_code == 1
    assert "no module 'shp'" in result.output
    assert "did you mean shop:app?" in result.output


def test_an_unknown_attribute_is_answered_with_a_likely_one(invoke):
    result = invoke("worker", "shop:ap")
    assert result.exit_code == 1
    assert "module shop has no attribute 'ap'; did you mean shop:app?" in result.output


def test_something_else_than_an_app_is_refused(invoke):
    result = invoke("worker", "shop:number")
    assert result.exit_code == 1
    assert "shop:number is an int, not a Windlass application; did you mean shop:app?" in result.output


def test_a_module_that_fails_shows_its_own_lines(invoke, programs):
    (programs / "broken.py").write_text("def divide():\n    return 1 / 0\n\ndivide()\n")
    result = invoke("worker", "broken:app")
    assert result.exit_code == 1
    assert "importing broken failed" in result.output
    assert "return 1 / 0" in result.output
    assert "ZeroDivisionError" in result.output
    assert "importlib" not in result.output


def test_a_missing_import_inside_a_module_is_not_taken_for_a_missing_module(invoke, programs):
    (programs / "lacking.py").write_text("import nothing_like_this\n")
    result = invoke("worker", "lacking:app")
    assert "importing lacking failed" in result.output
    assert "No module named 'nothing_like_this'" in result.output


def test_an_unknown_command_is_answered_with_a_likely_one(invoke):
    result = invoke("wrker")
    assert result.exit_code == 2
    assert "did you mean worker?" in result.output


@pytest.mark.parametrize(("typed", "meant"), [(("jb", "list"), "job"), (("job", "lst"), "list")])
def test_so_are_nouns_and_verbs(invoke, typed, meant):
    result = invoke(*typed)
    assert result.exit_code == 2
    assert f"did you mean {meant}?" in result.output


def test_an_unknown_verb_without_a_likely_one_is_answered_with_all(invoke):
    assert "there are: list, pause, resume" in invoke("queue", "explode").output


def test_a_mistyped_option_is_answered_with_a_likely_one(invoke):
    result = invoke("job", "list", "--statsu", "FAILED")
    assert result.exit_code == 2
    assert "'--status'" in result.output


def leaves(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """Commands that do something, with the context they are called in."""
    if not isinstance(command, click.Group):
        yield command, context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, click.Context(inner, info_name=name, parent=context))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_has_a_variable(name):
    """operations.md: every option with a `WINDLASS_*` twin; help names it."""
    top = click.Context(main, auto_envvar_prefix="WINDLASS")
    noun = main.get_command(top, name)
    assert noun is not None
    for command, context in leaves(noun, click.Context(noun, info_name=name, parent=top)):
        options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        assert options
        for option in options:
            extra = option.get_help_extra(context)
            flag = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
            path = "APP" if flag == "APP" else f"{context.command_path}_{flag}".replace(" ", "_").upper().lstrip("_")
            assert extra.get("envvars") == (f"WINDLASS_{path}",), f"{context.command_path} {option.opts}"


def test_a_variable_sets_an_option(invoke):
    result = invoke("worker", "shop:app", WINDLASS_WORKER_CONCURRENCY="none")
    assert result.exit_code == 2
    assert "--concurrency" in result.output
