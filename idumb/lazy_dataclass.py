"""`dataclasses.dataclass(slots=True)`, at a fraction of the cost for each class.

The standard one composes and compiles six functions for each class when its module is loaded: 0.8 ms of CPU time. A
command loads some two hundred classes, makes instances of a third, and compares next to none. Here nothing is compiled
but the `__init__` of a class of which many instances are made.

Type checkers see the standard one. `replace`, `fields`, `asdict` and `astuple` of `dataclasses` work as usual.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import reprlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

_FEW = 32
"""The number of instances of a class that cost less than the compilation of its `__init__`."""


def _dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False) -> Callable[[type], type]:
    """Return the decorator. TypeError for what only the standard one can do: see `_refuse_options`, or no fields."""
    if not slots:
        raise TypeError("this needs slots=True; for a class without slots, use dataclasses.dataclass")
    return lambda cls: _with_slots(cls, frozen=frozen, kw_only=kw_only)


if TYPE_CHECKING:
    from dataclasses import dataclass  # noqa: TID251 - what it stands for
else:
    dataclass = _dataclass


def _with_slots(cls: Any, *, frozen: bool, kw_only: bool) -> type:
    """Return a second class like `cls`, because slots can only be given to a class that is being made."""
    own = cls.__annotations__
    kinds = dict(getattr(cls, "__lazy_kinds__", {}))
    defaults = {name: value for name, value in getattr(cls, "__lazy_defaults__", {}).items() if name not in own}
    slots = tuple(name for name in own if name not in kinds)
    kinds.update(own)
    namespace = dict(vars(cls))
    del namespace["__dict__"], namespace["__weakref__"]
    defaults.update((name, namespace.pop(name)) for name in own if name in namespace)
    _refuse_options(defaults)

    count = 0

    def __init__(self: object, /, *arguments: Any, **named: Any) -> None:  # noqa: N807 - of the class that is made here
        nonlocal count
        count += 1
        if count > _FEW or (kw_only and arguments) or not _fill(self, kinds, defaults, arguments, named):
            compile_init(made)
            made.__init__(self, *arguments, **named)

    for name, method in {"__init__": __init__, **_methods(kinds, frozen=frozen)}.items():
        namespace.setdefault(name, method)
    namespace |= {
        "__qualname__": cls.__qualname__,
        "__slots__": slots,
        "__match_args__": () if kw_only else tuple(kinds),
        "__dataclass_fields__": _Fields(),
        "__lazy_kinds__": kinds,
        "__lazy_defaults__": defaults,
    }
    made: Any = type(cls)(cls.__name__, cls.__bases__, namespace)
    return made  # type: ignore[no-any-return]


def _refuse_options(defaults: Mapping[str, Any]) -> None:
    """TypeError for an option of `field` that is not heeded here, or a default that all instances would share."""
    for name, default in defaults.items():
        if not isinstance(default, dataclasses.Field):
            if default.__class__.__hash__ is None:
                raise TypeError(f"{name}: use default_factory for a mutable default")
        elif not (default.init and default.compare and default.hash is None and default.kw_only is dataclasses.MISSING):
            raise TypeError(f"{name}: of the options of field, only default, default_factory and repr work here")


def _methods(names: Mapping[str, Any], *, frozen: bool) -> dict[str, Any]:
    values = operator.attrgetter(*names)

    def equals(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    if not frozen:
        return {"__repr__": _repr, "__eq__": equals, "__hash__": None}
    refused = {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    # Without a state of its own, a copy would be filled by assignments, which are refused.
    state = {"__getstate__": _state, "__setstate__": _set_state}
    return {"__repr__": _repr, "__eq__": equals, "__hash__": hashed, **refused, **state}


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _refuse_assignment(_: object, name: str, __: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__lazy_kinds__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__lazy_kinds__, state, strict=True):
        object.__setattr__(self, name, value)


def _fill(
    self: object,
    names: Mapping[str, Any],
    defaults: Mapping[str, Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> bool:
    """Write the slots of an instance. Return False, with none written, if the arguments do not fit."""
    values = dict(zip(names, arguments, strict=False))
    values.update(named)
    if len(values) != len(arguments) + len(named) or not names.keys() >= named.keys():
        return False
    if len(values) < len(names):
        for name in names:
            if name not in values:
                values[name] = value = _default(defaults.get(name, dataclasses.MISSING))
                if value is dataclasses.MISSING:
                    return False
    for name, value in values.items():
        _write(self, name, value)
    return True


_write = object.__setattr__  # a frozen class refuses assignments


def _default(default: Any) -> Any:
    if not isinstance(default, dataclasses.Field):
        return default
    return default.default if default.default_factory is dataclasses.MISSING else default.default_factory()


def compile_init(cls: Any) -> None:
    """Give a class its final `__init__`: it writes slots by their descriptors, as a frozen class refuses assignments.

    A class does this itself when it has many instances.
    """
    defaults, kw_only = cls.__lazy_defaults__, not cls.__match_args__
    scope: dict[str, Any] = {"_ABSENT": dataclasses.MISSING}
    parameters, lines = ["self", "*"][: 1 + kw_only], []
    for name in cls.__lazy_kinds__:
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        parameter, value = _defaulted(name, defaults[name], scope) if name in defaults else (name, name)
        parameters.append(parameter)
        lines.append(f"\n _set_{name}(self, {value})")
    source = f"def __init__({', '.join(parameters)}):{''.join(lines)}"
    exec(compile(source, f"<__init__ of {cls.__qualname__}>", "exec"), scope)  # noqa: S102 - composed of names in code
    cls.__init__ = scope["__init__"]
    cls.__init__.__qualname__ = f"{cls.__qualname__}.__init__"


def _defaulted(name: str, default: Any, scope: dict[str, Any]) -> tuple[str, str]:
    """Return the parameter and the value of a field, and put into `scope` what they refer to."""
    described = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
    if described.default_factory is not dataclasses.MISSING:
        scope[f"_new_{name}"] = described.default_factory
        return f"{name}=_ABSENT", f"_new_{name}() if {name} is _ABSENT else {name}"
    if described.default is dataclasses.MISSING:
        return name, name
    scope[f"_default_{name}"] = described.default
    return f"{name}=_default_{name}", name


class _Fields:
    """The fields as `dataclasses` describes them, made when one of its functions first asks for them."""

    __slots__ = ()

    def __get__(self, _: object, cls: Any) -> dict[str, dataclasses.Field[Any]]:
        fields = {name: _described(name, kind, cls) for name, kind in cls.__lazy_kinds__.items()}
        cls.__dataclass_fields__ = fields
        return fields


@functools.cache
def _sample() -> dataclasses.Field[Any]:
    """Return a field that `dataclasses` made: copies of it are what its functions take for fields."""
    (made,) = dataclasses.fields(dataclasses.make_dataclass("_", ["_"]))
    return made


def _described(name: str, kind: Any, cls: Any) -> dataclasses.Field[Any]:
    default = cls.__lazy_defaults__.get(name, dataclasses.MISSING)
    field = copy.copy(_sample())
    field.name, field.type = name, kind
    if isinstance(default, dataclasses.Field):
        field.default, field.default_factory, field.repr = default.default, default.default_factory, default.repr
        field.metadata = default.metadata
    else:
        field.default = default
    return field
