"""Names, keys and fingerprints."""

import re
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.keys import (
    check_key,
    check_params,
    check_queue,
    check_tags,
    effect_key,
    error_fingerprint,
    message_shape,
)
from windlass.errors import InvalidOptionError

printable = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)


class TestKey:
    @given(printable.filter(lambda text: len(text) <= 255))
    def test_printable_text_up_to_255_characters_is_taken_as_it_is(self, key):
        """J1.6: keys <= 255 printable characters."""
        assert check_key(key, "business_key") == key

    def test_the_limit_is_255_characters_not_bytes(self):
        """J1.6: keys <= 255 printable characters."""
        assert check_key("é" * 255, "business_key")
        with pytest.raises(InvalidOptionError, match="business_key must have at most 255 characters, got 256"):
            check_key("é" * 256, "business_key")

    @pytest.mark.parametrize("key", ["a\nb", "a\x00", "tab\t", "\u200b", "\ud800", "no\u00a0break"])
    def test_unprintable_characters_are_refused_by_code_point(self, key):
        """J1.6: printable."""
        with pytest.raises(InvalidOptionError, match=r"idempotency_key must be printable.*U\+[0-9A-F]{4}"):
            check_key(key, "idempotency_key")

    @pytest.mark.parametrize("key", ["", " ", "\t"])
    def test_empty_and_blank_are_refused(self, key):
        with pytest.raises(InvalidOptionError, match="business_key must not be empty"):
            check_key(key, "business_key")

    @pytest.mark.parametrize("key", [7, None, b"key", ["key"]])
    def test_other_types_are_refused_and_named(self, key):
        with pytest.raises(InvalidOptionError, match=f"business_key must be a str, got .*{type(key).__name__}|b'key'"):
            check_key(key, "business_key")

    def test_a_long_value_is_not_repeated_in_full(self):
        with pytest.raises(InvalidOptionError) as refused:
            check_key("x" * 100_000, "business_key")
        assert len(str(refused.value)) < 300


class TestQueue:
    @given(st.from_regex(r"[A-Za-z0-9_.:-]{1,64}", fullmatch=True))
    def test_names_of_the_allowed_characters_are_taken(self, name):
        """Queues are named."""
        assert check_queue(name) == name

    @pytest.mark.parametrize(
        ("name", "suggestion"),
        [
            ("my queue", "my-queue"),
            (" billing ", "billing"),
            ("a/b", "a-b"),
            ("größe", "gr-e"),
            ("billing\n", "billing"),
        ],
    )
    def test_a_near_miss_gets_a_suggestion(self, name, suggestion):
        with pytest.raises(InvalidOptionError, match=f"did you mean '{suggestion}'"):
            check_queue(name)

    @pytest.mark.parametrize("name", ["", "  ", "//", 7, None, "x" * 65, ["default"]])
    def test_an_invalid_name_is_refused(self, name):
        with pytest.raises(InvalidOptionError, match="queue must be 1 to 64 characters"):
            check_queue(name)

    @given(st.text(max_size=200))
    def test_every_suggestion_is_itself_a_good_name(self, name):
        try:
            check_queue(name)
        except InvalidOptionError as refused:
            if found := re.search(r"did you mean '(.*)'\?$", str(refused)):
                assert check_queue(found[1])


class TestTags:
    def test_are_trimmed_lower_cased_and_kept_once_in_order(self):
        """J1.6: tags trimmed, lower-cased."""
        assert check_tags([" Billing", "EU ", "billing", "eu", "x"]) == ("billing", "eu", "x")

    @pytest.mark.parametrize("given_tags", [["a", "b"], ("a", "b"), {"a": 1, "b": 2}, (tag for tag in "ab")])
    def test_any_iterable_is_accepted(self, given_tags):
        assert check_tags(given_tags) == ("a", "b")

    def test_an_empty_list_is_accepted(self):
        assert check_tags([]) == ()

    @pytest.mark.parametrize("given_tags", ["billing", b"billing"])
    def test_a_single_text_is_refused_with_what_to_write(self, given_tags):
        with pytest.raises(InvalidOptionError) as refused:
            check_tags(given_tags)
        assert f"write tags=[{given_tags!r}]" in str(refused.value)

    @pytest.mark.parametrize(
        ("given_tags", "complaint"),
        [
            (["x" * 65], "at most 64 characters, got 65"),
            (["a", " "], "must not be empty"),
            (["a\x07b"], r"printable.*U\+0007"),
            ([7], r"a tag must be a str, got 7 \(int\)"),
            (7, r"tags must be a list of str, got 7 \(int\)"),
            (None, "tags must be a list of str"),
        ],
    )
    def test_invalid_tags_are_refused_with_the_reason(self, given_tags, complaint):
        """J1.6: tags <= 64 characters."""
        with pytest.raises(InvalidOptionError, match=complaint):
            check_tags(given_tags)

    def test_the_limit_counts_after_trimming(self):
        """J1.6: 64 characters that matter."""
        assert check_tags([f"  {'x' * 64}  "]) == ("x" * 64,)

    def test_the_limit_counts_what_is_stored(self):
        """J1.6: this letter becomes two when lower-cased."""
        with pytest.raises(InvalidOptionError, match="at most 64"):
            check_tags(["İ" * 64])

    @given(st.lists(printable.filter(lambda text: len(text.lower()) <= 64)))
    def test_checking_twice_changes_nothing(self, given_tags):
        once = check_tags(given_tags)
        assert check_tags(once) == once
        assert len(set(once)) == len(once)


class TestParams:
    def test_tags_are_returned_as_a_copy(self):
        given_params = {"tenant": "acme"}
        checked = check_params(given_params)
        given_params["tenant"] = "other"
        assert checked == {"tenant": "acme"}

    @pytest.mark.parametrize(
        ("value", "complaint"),
        [
            ({1: "x"}, r"str keys, got the key 1 \(int\); write '1'"),
            ([("a", 1)], "must be a mapping"),
            ("a=1", "must be a mapping"),
            (None, "must be a mapping"),
        ],
    )
    def test_refuses_what_has_no_text_keys(self, value, complaint):
        with pytest.raises(InvalidOptionError, match=complaint):
            check_params(value)


def test_an_effect_key_is_one_per_job_and_always_the_same():
    """Stable across attempts."""
    job, other = str(uuid4()), str(uuid4())
    assert effect_key(job) == effect_key(job)
    assert effect_key(job) != effect_key(other)
    assert check_key(effect_key(job), "effect_key")


class TestFingerprint:
    @pytest.mark.parametrize(
        ("message", "shape"),
        [
            ("user 'ann' has 3 orders", "user <str> has <n> orders"),
            ('column "total" is missing', "column <str> is missing"),
            ("no `name` in {}", "no <str> in {}"),
            ("job 0198c0de-0000-7000-8000-000000000001 lost", "job <uuid> lost"),
            ("job 0198C0DE-0000-7000-8000-00000000ABCD lost", "job <uuid> lost"),
            ("object at 0x7f3a9c", "object at <hex>"),
            ("digest 9f86d081884c7d65 differs", "digest <hex> differs"),
            ("took 1,234.5 s, limit 30", "took <n> s, limit <n>"),
            ("row42 of table7", "row<n> of table<n>"),
            ("can't open 'x', don't know why", "can't open <str>, don't know why"),
            ("  two\n lines ", "two lines"),
            ("a facade of defaced beef", "a facade of defaced beef"),
            ("", ""),
        ],
    )
    def test_the_shape_of_a_message_leaves_out_what_varies(self, message, shape):
        """Message shape."""
        assert message_shape(message) == shape

    def test_is_sixteen_hex_digits_and_never_changes(self):
        """Groups survive an upgrade, so the value itself is pinned."""
        made = error_fingerprint("shop:charge", "ValueError", "no order 7")
        assert re.fullmatch(r"[0-9a-f]{16}", made)
        assert made == "bb36d5225ff5f4e4"

    @given(st.integers(0), st.integers(0), st.uuids(), st.uuids(), st.from_regex(r"[^'\n]*", fullmatch=True))
    def test_failures_that_differ_only_in_values_share_it(self, one, other, job, another, name):
        """Grouped by fingerprint."""
        first = error_fingerprint("shop:charge", "KeyError", f"job {job}: no row {one} for 'ann'")
        second = error_fingerprint("shop:charge", "KeyError", f"job {another}: no row {other} for '{name}'")
        assert first == second

    def test_target_class_and_message_each_change_the_fingerprint(self):
        """Target + error class + message shape."""
        made = {
            error_fingerprint(target, kind, message)
            for target in ("a:f", "a:g")
            for kind in ("KeyError", "ValueError")
            for message in ("no row 1", "no column 1")
        }
        assert len(made) == 8

    @given(st.text(), st.text(), st.text())
    def test_every_text_has_a_fingerprint(self, target, kind, message):
        assert error_fingerprint(target, kind, message) == error_fingerprint(target, kind, message)

    @given(st.text())
    def test_the_shape_of_a_shape_is_itself(self, message):
        assert message_shape(message_shape(message)) == message_shape(message)

    def test_a_huge_hostile_message_costs_no_time(self):
        for piece in ("'", "'a", "a1", "0x", "`\"'", "f" * 7 + " ", "1,", " "):
            error_fingerprint("a:f", "E", piece * 1_000_000)
