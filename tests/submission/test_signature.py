"""Signatures: binding like Python does, annotations resolved at first use."""

import functools
import gc
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.errors import ConfigurationError, SerializationError
from windlass.submission.signature import call_spec

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


def charge(invoice: int, note: str = "", *, copies: int = 1) -> "Later":
    return Later()


class Later: ...


def strict(a, /, b, *, c): ...
def free(*args: int, **kwargs: str): ...
def nothing(): ...
async def coroutine(a: int) -> Optional["Later"]: ...


class Service:
    def method(self, invoice: int) -> str:
        return str(invoice)

    @classmethod
    def made(cls, invoice: int) -> str:
        return str(invoice)

    def starred(*args: Any) -> None: ...

    def without_self() -> None: ...  # type: ignore[misc]


def test_a_spec_has_parameters_by_position_and_by_name():
    spec = call_spec(charge)
    assert spec.name == "charge"
    assert [parameter.name for parameter in spec.positional] == ["invoice", "note"]
    assert list(spec.keyword) == ["invoice", "note", "copies"]
    assert spec.keyword["copies"].annotation is int
    assert spec.var_positional is None
    assert spec.var_keyword is None
    assert not spec.is_coroutine


def test_forward_references_are_resolved_at_first_use():
    assert call_spec(charge).returns is Later
    assert call_spec(coroutine).returns == Later | None
    assert call_spec(coroutine).is_coroutine


def test_a_parameter_without_annotation_may_be_anything():
    spec = call_spec(strict)
    assert spec.returns is Any
    assert {parameter.annotation for parameter in spec.positional} == {Any}


def test_an_annotation_that_cannot_be_resolved_is_an_error_with_advice():
    def job(amount: "OnlyForTypeCheckers") -> None: ...

    with pytest.raises(SerializationError, match=r"job: .*OnlyForTypeCheckers.*not only under TYPE_CHECKING"):
        call_spec(job)


def test_an_unusable_annotation_hinders_only_calls_that_use_it():
    """A parameter with a default may have any type as long as it is left out."""

    def job(a: int, log: Callable[[str], None] | list[str | bytes] | None = None) -> None: ...

    assert [parameter.name for parameter in call_spec(job).positional] == ["a", "log"]


def test_a_method_is_bound_without_self():
    spec = call_spec(Service.method, skip_first=True)
    assert [parameter.name for parameter in spec.positional] == ["invoice"]
    spec.bind_check((7,), {})
    with pytest.raises(TypeError, match=r"Service\.method\(\)"):
        spec.bind_check((Service(), 7), {})


def test_a_class_method_is_bound_without_cls():
    assert [item.name for item in call_spec(Service.made).positional] == ["invoice"]
    assert [item.name for item in call_spec(Service.made.__func__, skip_first=True).positional] == ["invoice"]  # type: ignore[attr-defined]


def test_a_method_may_take_self_in_its_star_arguments():
    call_spec(Service.starred, skip_first=True).bind_check((1, 2, 3), {})


def test_a_method_without_self_is_an_error():
    with pytest.raises(ConfigurationError, match="add self, or decorate it with @staticmethod"):
        call_spec(Service.without_self, skip_first=True)


@pytest.mark.parametrize(
    ("args", "kwargs", "reason"),
    [
        ((), {}, "missing a required argument: 'invoice'"),
        ((1, "a", 2), {}, "too many positional arguments"),
        ((1,), {"invoice": 2}, "multiple values for argument 'invoice'"),
        ((1,), {"unknown": 2}, "unexpected keyword argument 'unknown'"),
        ((), {"note": "x"}, "missing a required argument: 'invoice'"),
    ],
)
def test_arguments_that_do_not_bind_are_a_type_error_with_name_and_signature(args, kwargs, reason):
    """J1.1: arguments are bound to the signature at enqueue (TypeError there)."""
    with pytest.raises(TypeError) as caught:
        call_spec(charge).bind_check(args, kwargs)
    assert reason in str(caught.value)
    assert "charge()" in str(caught.value)
    assert "invoice: int" in str(caught.value)


names = st.sampled_from(["invoice", "note", "copies", "a", "b", "c", "x"])


@given(
    st.sampled_from([charge, strict, free, nothing, coroutine]),
    st.lists(st.integers(), max_size=4),
    st.dictionaries(names, st.integers(), max_size=4),
)
def test_binding_agrees_with_python(function: Callable[..., Any], args: list[int], kwargs: dict[str, int]):
    """J1.1: the quick checks must not differ from what a call would do."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
        expected = True
    except TypeError:
        expected = False
    try:
        call_spec(function).bind_check(tuple(args), kwargs)
        bound = True
    except TypeError:
        bound = False
    assert bound == expected


def test_a_spec_is_made_once_and_does_not_keep_its_function_alive():
    def job(a: int) -> None: ...

    assert call_spec(job) is call_spec(job)
    gone = weakref.ref(job)
    del job
    gc.collect()
    assert gone() is None


def test_a_failed_spec_is_built_again():
    """A name may be missing only until the module has been read to its end."""

    def job(a: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SerializationError):
        call_spec(job)
    job.__globals__["Missing"] = int
    try:
        assert call_spec(job).positional[0].annotation is int
    finally:
        del job.__globals__["Missing"]


def test_decorated_functions_keep_their_signature():
    @functools.wraps(charge)
    def wrapper(*args, **kwargs):
        return charge(*args, **kwargs)

    assert list(call_spec(wrapper).keyword) == ["invoice", "note", "copies"]
    assert call_spec(wrapper).returns is Later


def test_a_callable_object_is_read_by_its_call_method():
    class Caller:
        __slots__ = ()

        def __call__(self, invoice: int) -> str:
            return str(invoice)

    spec = call_spec(Caller())
    assert spec.positional[0].annotation is int
    assert spec.returns is str


def test_a_builtin_without_a_signature_is_refused():
    with pytest.raises(SerializationError, match="wrap it in a Python function"):
        call_spec(getattr)
