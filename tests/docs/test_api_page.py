"""docs/reference/api.md lists every public name."""

import windlass
from docs.generate_api import PAGE, parts
from docs.generated_parts import filled, names_in


def test_the_page_is_what_the_generator_writes():
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, parts()) == page, "stale: run `make docs-api`"


def test_the_page_has_markers_for_every_part():
    assert sorted(names_in(PAGE.read_text(encoding="utf-8"))) == sorted(parts())


def test_every_public_name_is_listed_once():
    written = "\n".join(parts().values())
    for name in windlass.__all__:
        entries = [f"### `{name}`\n", f"| [`{name}`](", f"- `{name}`: "]
        assert sum(written.count(entry) for entry in entries) == 1, name


def test_every_verb_of_the_application_is_described():
    section = parts()["classes"].partition("### `Windlass`\n")[2].partition("\n### ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    assert rows
    assert [row[1] for row in rows if not row[2].strip()] == []
