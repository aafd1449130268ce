"""`windlass execution cancel|pause|resume`: a line per execution with what happened, or why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from windlass.app import Windlass
from windlass.cli.confirmation import confirm
from windlass.cli.job.moves import CODES, negated, print_moved, some_ids
from windlass.cli.parameters import on_application, tenant_option, yes_option
from windlass.cli.short_ids import full_execution_id
from windlass.domain.control_characters import visible
from windlass.domain.execution import ENDED, ExecutionStatus
from windlass.errors import NotAuthorizedError
from windlass.execution_errors import ExecutionNotFoundError
from windlass.pipelines.execution_handle import ExecutionHandle

CODES_OF_EXECUTIONS = CODES.replace("job", "execution")


@click.command(name="cancel", epilog=CODES_OF_EXECUTIONS)
@on_application
@some_ids
@tenant_option
@yes_option
def cancel(app: Windlass, ids: list[str], tenant: str, yes: bool) -> None:
    """Cancel executions that have not ended, with all their items. Asks for confirmation.

    What runs is notified, wherever it runs. It cannot be undone.

    \b
        windlass execution cancel 0198c0de-0000-7000-8000-000000000001
    """
    handles = _handles(app, ids, tenant)
    what = f"execution {handles[0].id}" if len(handles) == 1 else f"{len(handles)} executions"
    confirm(f"Cancel {what} in {app.database.description}?", yes=yes)
    _each(handles, ExecutionHandle.cancel, "canceled", _why_not)


@click.command(name="pause", epilog=CODES_OF_EXECUTIONS)
@on_application
@some_ids
@tenant_option
def pause(app: Windlass, ids: list[str], tenant: str) -> None:
    """Hold executions until they are resumed: what waits at once, what runs at its next boundary.

    \b
        windlass execution pause 0198c0de-0000-7000-8000-000000000001
    """
    _each(_handles(app, ids, tenant), ExecutionHandle.pause, "paused", _why_not)


@click.command(name="resume", epilog=CODES_OF_EXECUTIONS)
@on_application
@some_ids
@tenant_option
def resume(app: Windlass, ids: list[str], tenant: str) -> None:
    """Resume paused executions.

    \b
        windlass execution resume 0198c0de-0000-7000-8000-000000000001
    """
    handles = _handles(app, ids, tenant)
    _each(handles, ExecutionHandle.resume, "resumed", lambda status: f"it is not paused, but {status}")


def _handles(app: Windlass, ids: Sequence[str], tenant: str) -> list[ExecutionHandle]:
    full = dict.fromkeys(full_execution_id(app, one, tenant) for one in ids)
    return [app.executions.handle(one, tenant) for one in full]


def _each(
    handles: Sequence[ExecutionHandle],
    move: Callable[[ExecutionHandle], bool],
    done: str,
    why_not: Callable[[ExecutionStatus], str],
) -> None:
    """Move one after the other; one that cannot be moved does not stop the rest."""
    refused = 0
    for handle in handles:
        try:
            reason = "" if move(handle) else why_not(handle.status())
        except ExecutionNotFoundError:
            reason = f"tenant {visible(handle.tenant)} has no execution of this id"
        except NotAuthorizedError as error:
            reason = f"{error.principal} may not {error.action} it: {error.why}"
        refused += bool(reason)
        text = f"{negated(done)}: {reason}" if reason else done
        print_moved(str(handle.id), text, "yellow" if reason else "green")
    if refused:
        raise SystemExit(1)


def _why_not(status: ExecutionStatus) -> str:
    return f"it has ended ({status})" if status in ENDED else f"it is {status} already"
