"""The shape of a value: whether its reader can look at it at all."""

from __future__ import annotations

from idumb.markdown.syntax import yaml_nodes
from idumb.markdown.syntax.field_values import Value
from idumb.markdown.syntax.problems import Problems

# What may stand below the line: commands in a fence, and a value on the line together with bullets.
_WITH_FENCES = frozenset({"verify", "rollback"})
_BOTH = frozenset({"rollback", "limits"})


def usable(value: Value, problems: Problems) -> bool:
    """Whether the value has a shape that its reader can look at."""
    if value.node is not None:
        return _usable_node(value, problems)
    below = bool(value.bullets or (value.fences and value.name in _WITH_FENCES))
    if not value.inline.s and not below:
        if not value.others:
            _empty(value, problems)
            return False
    elif value.inline.s and value.bullets and value.name not in _BOTH:
        problems.error(
            "field.two-places",
            value.label_at,
            f"{value.label} has a value on its line and bullets below",
            field=value.label,
            found=value.inline.s,
            accepted="one of them",
            mend="put everything into the bullets",
        )
        return False
    return _no_strays(value, problems)


def _no_strays(value: Value, problems: Problems) -> bool:
    strays: list[int] = [problems.source.starts[b.line] for b in value.others]
    strays += [f.start for f in value.fences if value.name not in _WITH_FENCES]
    if value.name != "acceptance":
        strays += [problems.source.starts[b.line] for bullet in value.bullets for b in bullet.others]
    for at in strays[:1]:
        problems.error(
            "field.unexpected-content",
            at,
            f"{value.label} cannot hold what stands here",
            field=value.label,
            accepted="a value on the line, or bullets below",
            mend="write it as bullets, or move it into the description",
        )
    return not strays


def _empty(value: Value, problems: Problems) -> None:
    problems.error(
        "field.empty",
        value.label_at,
        f"{value.label} has no value",
        field=value.label,
        accepted="a value, or none",
        mend=f"{'indent its value below it, or ' * (value.node is not None)}write none if there is nothing",
    )


# Fields whose YAML value may be a mapping.
_MAPPINGS = frozenset({"files", "interfaces", "limits", "rollback", "options", "acceptance"})


def _usable_node(value: Value, problems: Problems) -> bool:
    node = value.node
    if isinstance(node, yaml_nodes.Scalar):
        if node.value.strip():
            return value.name != "files" or value.is_none or _bad_node(value, node, problems)
        _empty(value, problems)
        return False
    if isinstance(node, yaml_nodes.Sequence):
        odd = next((i for i in node.items if not isinstance(i, yaml_nodes.Scalar) or not i.value.strip()), None)
        wrong = value.name == "files" and node.items
        if value.name == "acceptance" or (odd is None and not wrong):
            return True
        return _bad_node(value, odd or node, problems)
    return value.name in _MAPPINGS - {"acceptance"} or _bad_node(value, node, problems)


def _bad_node(value: Value, node: yaml_nodes.Node | None, problems: Problems) -> bool:
    accepted = "a map of verbs to lists of paths" if value.name == "files" else "a text or a list of texts"
    problems.error(
        "field.not-text",
        node.start if node else value.label_at,
        f"{value.label} does not hold {accepted}",
        field=value.label,
        accepted=accepted,
        mend=f"write {accepted}",
    )
    return False
