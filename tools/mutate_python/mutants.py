"""Mutants of one Python file: those of mutmut, and those in what mutmut leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


def mutants_of(path: Path) -> Iterator[dict[str, Any]]:
    """Every mutant of a file: its text, the functions whose code differs (none: code of the module or of a class), and
    the lines that differ."""
    import libcst as cst
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import get_ignored_lines

    class Visitor(MutationVisitor):
        def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
            if isinstance(node, cst.FunctionDef) and node.decorators:
                return False
            return bool(super()._skip_node_and_children(node))

    text = path.read_text(encoding="utf-8")
    wrapper = cst.MetadataWrapper(cst.parse_module(text))
    visitor = Visitor(mutation_operators, get_ignored_lines(str(path), text, wrapper, None), None)
    module = wrapper.visit(visitor)
    same: Counter[str] = Counter()
    right, seen = compile(text, str(path), "exec"), {text}
    plain, own = module_part(right), codes(right)
    for mutation in visitor.mutations:
        inside = mutation.contained_by_top_level_function
        alone = isinstance(inside, cst.FunctionDef) and text.count(module.code_for_node(inside)) == 1
        whole: Any = inside if alone else module
        part: Any = deep_replace(whole, mutation.original_node, mutation.mutated_node)
        changed = text.replace(module.code_for_node(whole), module.code_for_node(part))
        if changed in seen:
            continue
        seen.add(changed)
        try:
            wrong = compile(changed, str(path), "exec")
        except SyntaxError:
            continue
        theirs = codes(wrong)
        functions = [name for name in own if own[name] != theirs.get(name)]
        outside = module_part(wrong) != plain
        if not functions and not outside:
            continue  # an annotation, which is never evaluated
        diff = [*unified_diff(text.splitlines(), changed.splitlines(), n=0)][2:]
        decorated = isinstance(inside, cst.FunctionDef) and bool(inside.decorators)
        kind = "module" if not isinstance(inside, cst.FunctionDef) else "decorated" if decorated else "mutmut"
        before = " ".join(line[1:].strip() for line in diff if line[0] == "-")
        after = " ".join(line[1:].strip() for line in diff if line[0] == "+")
        name = f"{path}:{','.join(functions)}: {before} -> {after}"
        same[name] += 1
        yield {
            "id": name if same[name] == 1 else f"{name} ({same[name]})",
            "functions": functions,
            "outside": outside,
            "kind": kind,
            "before": before,
            "after": after,
            "text": changed,
            "codes": {name: theirs[name] for name in functions if name in theirs},
        }


def codes(code: CodeType, prefix: str = "") -> dict[str, CodeType]:
    """The functions of a module and of its classes, by qualified name."""
    found: dict[str, CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = prefix + inner.co_name
            if inner.co_flags & 0x2:  # new locals: a function, and no class
                found[name] = inner
            else:
                found |= codes(inner, name + ".")
    return found


def module_part(code: CodeType) -> tuple[Any, ...]:
    """What a module's code does, but for the bodies of its functions."""
    rest = tuple(
        one.co_qualname
        if isinstance(one, CodeType) and one.co_flags & 0x2 and one.co_name[0] != "<"
        else module_part(one)
        if isinstance(one, CodeType)
        else repr(one)
        for one in code.co_consts
    )
    return code.co_code, rest, code.co_names


def live(module: ModuleType, name: str) -> FunctionType | None:
    """The function of a qualified name, from under its decorators."""
    thing: Any = module
    for part in name.split("."):
        thing = vars(thing).get(part) if thing is not None else None
    for _ in range(8):
        if isinstance(thing, FunctionType) and not hasattr(thing, "__wrapped__"):
            return thing
        thing = next(
            (getattr(thing, at) for at in ("__wrapped__", "fget", "__func__", "func") if hasattr(thing, at)),
            None,
        )
    return None
