"""Stored names of functions: what to do where one is not known, as part of messages."""


def module_of(target: str) -> str | None:
    """The module of `module:qualname`; None for a name that names none, e.g. `billing.charge`."""
    module, colon, _ = target.partition(":")
    return module if colon else None


def not_imported(target: str) -> str:
    """Why a target is not known where nothing of that name is loaded."""
    module = module_of(target)
    if module is None:
        return f"no job called {target} is declared here: {how_to_import(target)}"
    return f"{target} is not known here: its module {module} was not imported; {how_to_import(target)}"


def how_to_import(target: str) -> str:
    """How workers get to know a target."""
    module = module_of(target)
    if module is None:
        return "have workers import the module that declares it: Windlass(include=[...])"
    return f"have workers import its module: Windlass(include=[{module!r}])"
