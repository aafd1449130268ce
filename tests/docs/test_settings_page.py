"""docs/reference/settings.md says what the settings are."""

from docs.generate_settings import PAGE, parts
from docs.generated_parts import filled, names_in
from windlass.settings import SECTIONS


def test_the_page_is_what_the_generator_writes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, parts()) == page, "stale: run `make docs-settings`"


def test_every_section_has_its_table_once():
    assert names_in(PAGE.read_text(encoding="utf-8")) == list(SECTIONS)


def test_every_field_is_explained():
    for name, kind in SECTIONS.items():
        undocumented = [field for field in kind.options() if f"| `{field}` |" not in parts()[name]]
        assert undocumented == []
