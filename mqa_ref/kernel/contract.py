"""The contract of a kernel class: which arguments its constructor and its ``__call__`` must take.

It is the contract of ``PagedMqaLogitsSm100`` and of the kernels it stands beside (op.md). Checked by looking at
signatures alone: nothing of the kernel is called, and every fault is told at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from mqa_ref.errors import Fault, InputError

CONSTRUCTOR = (
    *("block_kv", "phys_block_kv", "num_heads", "head_dim", "next_n", "num_sms"),
    *("epi_dtype", "acc_dtype", "output_dtype"),
)
"""Passed by name to the constructor, whatever else it takes."""
CALL = (
    *("kv_fused", "b", "weights", "logits", "block_table", "context_lens", "schedule_meta"),
    *("num_phys_blocks", "batch_size", "stream"),
)
"""Passed by position to ``__call__``; the compiled code knows them by these names."""

SUPPLIED = ("arch",)
"""Passed by name, too, to a constructor that has it: the architecture that is compiled for."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PLACED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


def check_contract(factory: Any, name: str) -> Callable[..., Any]:
    """``factory`` if it is a class that keeps the contract. ``name`` is what the user called it.

    Raises InputError with every missing and every unexpected argument.
    """
    if not inspect.isclass(factory):
        raise InputError([Fault("kernel", f"{name}, of type {type(factory).__name__}", "a class")])
    faults = [*_constructor_faults(factory), *_call_faults(factory)]
    if faults:
        raise InputError(faults)
    return factory


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _constructor_faults(factory: type) -> Iterator[Fault]:
    what, parameters = f"{factory.__name__}.__init__", _parameters(factory)
    expected = "the arguments " + ", ".join(CONSTRUCTOR)
    if parameters is None:
        yield Fault(what, "no signature", expected)
        return
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    known = {parameter.name for parameter in parameters if parameter.kind in _NAMED}
    missing = [] if takes_all else [name for name in CONSTRUCTOR if name not in known]
    if missing:
        yield Fault(what, "no argument " + ", ".join(missing), expected)
    unexpected = [
        one.name for one in parameters if one.name not in (*CONSTRUCTOR, *SUPPLIED) and _is_required(one)
    ]
    if unexpected:
        yield Fault(what, "required arguments " + ", ".join(unexpected), f"{expected}; a default for others")


def _call_faults(factory: type) -> Iterator[Fault]:
    what = f"{factory.__name__}.__call__"
    expected = "the arguments " + ", ".join(CALL) + ", in this order"
    # Not getattr: every class can itself be called, through its own class.
    function = next((vars(base)["__call__"] for base in factory.__mro__ if "__call__" in vars(base)), None)
    parameters = _parameters(function) if function is not None else None
    if parameters is None:
        yield Fault(what, "no such method", expected)
        return
    names = [one.name for one in parameters[1:]]
    missing = [name for name in CALL if name not in names]
    unexpected = [one.name for one in parameters[1:] if one.name not in CALL]
    if missing:
        yield Fault(what, "no argument " + ", ".join(missing), expected)
    if unexpected:
        yield Fault(what, "arguments " + ", ".join(unexpected), expected)
    elif not missing and (tuple(names) != CALL or any(one.kind not in _PLACED for one in parameters[1:])):
        yield Fault(what, "arguments " + ", ".join(names), expected)


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (*_NAMED, parameter.POSITIONAL_ONLY)
