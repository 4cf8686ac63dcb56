"""Classes of `idumb.lazy_dataclass` behave like those of `dataclasses`: most tests run on both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any, Generic, TypeVar

import pytest

from idumb import lazy_dataclass
from tests.support.cases import every

T = TypeVar("T")


def family(decorator: Any) -> Any:
    """Return the same classes, made by one decorator or the other."""

    class Family:
        @decorator(frozen=True, slots=True)
        class Point:
            """A point with a name."""

            x: int
            y: int = 2
            names: dict[str, str] = field(default_factory=dict)
            secret: str = field(default="s", repr=False)

            @property
            def total(self) -> int:
                return self.x + self.y

        @decorator(frozen=True, slots=True)
        class Like:
            x: int
            y: int = 2
            names: dict[str, str] = field(default_factory=dict)
            secret: str = field(default="s", repr=False)

        @decorator(slots=True)
        class Counter:
            count: int = 0
            seen: list[int] = field(default_factory=list)

        @decorator(slots=True)
        class Named(Counter):
            name: str = ""
            count: int = 7

        @decorator(frozen=True, slots=True, kw_only=True)
        class Early:
            optional: str = ""
            result: str | None = None

        @decorator(frozen=True, slots=True, kw_only=True)
        class Late(Early):
            required: str
            result: str | None

        @decorator(frozen=True, slots=True)
        class Box(Generic[T]):
            content: T

            def __repr__(self) -> str:
                return "a box"

        @decorator(frozen=True, slots=True)
        class Tree:
            children: tuple[Any, ...] = ()

    return Family


STANDARD = family(dataclasses.dataclass)


@pytest.fixture(params=["standard", "lazy", "compiled"])
def classes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The classes; a family of its own for each test, because wrong arguments too compile an `__init__`."""
    if request.param == "standard":
        return STANDARD
    if request.param == "compiled":
        monkeypatch.setattr(lazy_dataclass, "_FEW", 0)
    return family(lazy_dataclass.dataclass)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPair:
    left: int
    right: tuple[int, ...] = ()


@lazy_dataclass.dataclass(frozen=True, slots=True)
class LazyPair:
    left: int
    right: tuple[int, ...] = ()


def test_an_instance_takes_values_by_position_by_name_and_from_defaults(classes: Any) -> None:
    point = classes.Point(1, names={"a": "b"})
    assert (point.x, point.y, point.names, point.secret, point.total) == (1, 2, {"a": "b"}, "s", 3)
    assert classes.Point(1).names is not classes.Point(1).names


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, {}, "s", 5), {}), ((1,), {"x": 2}), ((1,), {"other": 2})]
)
def test_wrong_arguments_are_refused_in_the_same_words(
    classes: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError) as expected:
        STANDARD.Point(*arguments, **named)
    for _ in range(2):  # the second call is that of the compiled function
        with pytest.raises(TypeError) as refused:
            classes.Point(*arguments, **named)
        assert str(refused.value) == str(expected.value)


def test_instances_are_equal_if_class_and_values_are(classes: Any) -> None:
    assert classes.Point(1) == classes.Point(1, 2)
    assert classes.Point(1) != classes.Point(2)
    assert classes.Point(1) != classes.Like(1)
    assert classes.Point(1) != (1, 2, {}, "s")
    assert classes.Counter(1) != classes.Named(1)


def test_only_frozen_instances_have_a_hash_and_equal_ones_have_the_same(classes: Any) -> None:
    assert {classes.Box(1), classes.Box(1), classes.Box(2)} == {classes.Box(2), classes.Box(1)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(classes.Counter())
    with pytest.raises(TypeError, match="unhashable"):
        hash(classes.Point(1))  # its dict has none


def test_a_frozen_instance_refuses_assignment_and_deletion(classes: Any) -> None:
    point = classes.Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    with pytest.raises((AttributeError, TypeError)):  # TypeError by a bug of the standard one, up to Python 3.13
        point.other = 2
    assert point.x == 1


def test_other_instances_take_assignments_to_their_fields_only(classes: Any) -> None:
    counter = classes.Counter()
    counter.count += 1
    assert counter == classes.Counter(1)
    with pytest.raises(AttributeError):
        counter.other = 1
    assert not hasattr(counter, "__dict__")


def test_a_class_inherits_fields_and_may_change_their_defaults(classes: Any) -> None:
    named = classes.Named()
    assert (named.count, named.seen, named.name) == (7, [], "")
    assert classes.Named(1, [2], "three").name == "three"
    assert classes.Named.__slots__ == ("name",)
    assert repr(classes.Late(required="a", result=None)).endswith("Late(optional='', result=None, required='a')")
    with pytest.raises(TypeError):
        classes.Late(required="a")  # an inherited default is gone
    with pytest.raises(TypeError):
        classes.Late("", None, "a")


def test_the_text_of_an_instance_names_its_fields(classes: Any) -> None:
    assert repr(classes.Point(1)).endswith("Family.Point(x=1, y=2, names={})")
    assert repr(classes.Box(1)) == "a box"
    names: dict[str, Any] = {}
    names["itself"] = classes.Point(1, names=names)
    assert "names={'itself': ...}" in repr(names["itself"])


def test_the_functions_of_dataclasses_work(classes: Any) -> None:
    point = classes.Point(1, names={"a": "b"})
    assert all(map(dataclasses.is_dataclass, (classes.Point, point)))
    assert [each.name for each in dataclasses.fields(classes.Late)] == ["optional", "result", "required"]
    assert dataclasses.replace(point, x=5) == classes.Point(5, names={"a": "b"})
    with pytest.raises(TypeError):
        dataclasses.replace(point, other=5)
    assert dataclasses.astuple(point) == (1, 2, {"a": "b"}, "s")
    tree = classes.Tree((classes.Tree(), classes.Counter(3)))
    assert dataclasses.asdict(tree) == {"children": ({"children": ()}, {"count": 3, "seen": []})}
    assert dataclasses.asdict(classes.Named()) == {"count": 7, "seen": [], "name": ""}


def test_patterns_match_fields_by_position_and_by_name(classes: Any) -> None:
    match classes.Point(1):
        case classes.Point(x, 2, secret="s"):
            assert x == 1
        case _:
            pytest.fail("no match")
    assert classes.Late.__match_args__ == ()


def test_a_copy_equals_its_original_and_shares_nothing_if_it_is_deep(classes: Any) -> None:
    point = classes.Point(1, names={"a": "b"})
    assert copy.copy(point) == point
    assert copy.copy(point).names is point.names
    assert copy.deepcopy(point) == point
    assert copy.deepcopy(point).names is not point.names
    assert copy.copy(classes.Named(1)) == classes.Named(1)


@every("pair", [StandardPair(1, (2,)), LazyPair(1, (2,))])
def test_an_instance_survives_pickling(pair: Any) -> None:
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_a_class_keeps_its_name_documentation_and_methods(classes: Any) -> None:
    assert classes.Point.__doc__ == "A point with a name."
    assert (classes.Point.__name__, classes.Point.__module__) == ("Point", __name__)
    for _ in range(lazy_dataclass._FEW + 1):  # the function that serves the first ones takes any arguments
        classes.Point(1)
    assert list(inspect.signature(classes.Point).parameters) == ["x", "y", "names", "secret"]


def test_init_is_compiled_once_when_many_instances_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_dataclass, "_FEW", 1)
    made = family(lazy_dataclass.dataclass).Box
    before = vars(made)["__init__"]
    made(0)
    assert vars(made)["__init__"] is before
    made(1)
    compiled = vars(made)["__init__"]
    made(2)
    assert before is not compiled
    assert vars(made)["__init__"] is compiled
    before(made(3), content=4)  # as if another thread had been about to make an instance as well
    assert made(5).content == 5


def test_what_only_the_standard_decorator_can_do_is_refused() -> None:
    class Empty:
        pass

    with pytest.raises(TypeError, match="slots=True"):
        lazy_dataclass.dataclass(slots=False)
    with pytest.raises(TypeError):
        lazy_dataclass.dataclass(slots=True)(Empty)
    for options in ({"compare": False}, {"init": False}, {"hash": False}, {"kw_only": True}):

        class Odd:
            x: int = field(default=1, **options)  # type: ignore[call-overload]

        with pytest.raises(TypeError, match="x: of the options"):
            lazy_dataclass.dataclass(slots=True)(Odd)


def test_a_mutable_default_is_refused(classes: Any) -> None:
    class Shared:
        x: list[int] = []  # noqa: RUF012 - that is what is refused

    decorator = dataclasses.dataclass if classes is STANDARD else lazy_dataclass.dataclass
    with pytest.raises((TypeError, ValueError), match=r"x.*default_factory"):
        decorator(slots=True)(Shared)
