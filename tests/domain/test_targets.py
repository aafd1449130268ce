"""Messages about targets that are not known."""

import pytest

from windlass.domain.targets import how_to_import, module_of, not_imported


@pytest.mark.parametrize(
    ("target", "module"), [("shop.jobs:charge", "shop.jobs"), ("shop:Till.open", "shop"), ("billing.charge", None)]
)
def test_a_target_names_its_module_and_a_custom_name_names_none(target: str, module: str | None):
    """J1.8: the message says what workers import."""
    assert module_of(target) == module
    assert (f"include=[{module!r}]" if module else "include=[...]") in how_to_import(target)
    assert not_imported(target).endswith(how_to_import(target))
    assert target in not_imported(target)
