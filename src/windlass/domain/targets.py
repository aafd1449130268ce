"""Stored names of functions, and the advice in messages where one is not known."""


def module_of(target: str) -> str | None:
    """Return the module of `module:qualname`; None for a name without one, e.g. `billing.charge`."""
    module, colon, _ = target.partition(":")
    return module if colon else None


def not_imported(target: str) -> str:
    """Return why a target is not known where nothing of that name is loaded."""
    module = module_of(target)
    if module is None:
        return f"no job called {target} is declared here: {how_to_import(target)}"
    return f"{target} is not known here: its module {module} was not imported; {how_to_import(target)}"


def how_to_import(target: str) -> str:
    """Return the advice how to make a target known to workers."""
    module = module_of(target)
    if module is None:
        return "have workers import the module that declares it: Windlass(include=[...])"
    return f"have workers import its module: Windlass(include=[{module!r}])"
