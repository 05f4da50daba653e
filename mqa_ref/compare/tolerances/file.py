"""Where tolerances.toml lies, reading it and writing it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mqa_ref.compare.tolerances.model import Kind, Tolerances
from mqa_ref.errors import Fault, InputError
from mqa_ref.flow import Flow

NAME = "tolerances.toml"
_HEADING = """\
# What a result may differ from what it is held against, flow by flow; docs/tolerances.md explains every key.
# Written by `mqa-ref tolerances derive`; `mqa-ref tolerances check` measures anew and holds this against it.
"""


def source() -> Traversable:
    """The file: in an installed package within it, in a checkout at the top level, beside pyproject.toml.

    Raises InputError when it is at neither place.
    """
    package = resources.files("mqa_ref")
    packed = package / NAME
    if packed.is_file():
        return packed
    top = Path(str(package)).parent
    if (top / NAME).is_file() and (top / "pyproject.toml").is_file():
        return top / NAME
    raise InputError(
        [Fault(NAME, "no such file", f"in the package or at the top level of the checkout ({top})")]
    )


def read(path: Path | None = None) -> Tolerances:
    """The typed file, None for this project's own. Raises InputError with every fault at once."""
    place: Traversable = source() if path is None else path
    try:
        text = place.read_bytes().decode("utf-8")
        return Tolerances.model_validate(tomllib.loads(text))
    except OSError as error:
        raise InputError([Fault(NAME, str(place), f"a file that can be read ({error.strerror})")]) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError([Fault(NAME, str(place), f"TOML in UTF-8: {error}")]) from error
    except ValidationError as error:
        raise InputError(
            Fault(".".join([NAME, *map(str, told["loc"])]), repr(told["input"])[:80], told["msg"])
            for told in error.errors(include_url=False)
        ) from error


@lru_cache(maxsize=1)
def _own() -> Tolerances:
    return read()


def factor(flow: Flow, kind: Kind) -> float:
    """What to multiply the bounds of a flow with: ``exact`` for ``own_order_bounds``, ``foreign_order`` for
    ``any_order_bounds``. Raises InputError for a kind that compares bits and for a row that is missing."""
    row = _own().rows(str(flow))[kind]
    number = getattr(row, "factor", None)
    if number is None:
        raise InputError([Fault("kind", kind, f"a row of {NAME} with a factor, for flow {flow}")])
    return float(number)


def to_toml(tolerances: Tolerances) -> str:
    """The text of the file."""
    lines = [_HEADING]
    lines += [f"{name} = {getattr(tolerances, name)}" for name in ("version", "seed", "elements")]
    for flow in tolerances.flows:
        for kind, row in tolerances.rows(flow).items():
            if row is not None:
                lines += ["", f'[flows."{flow}".{kind}]', *_row(row)]
    return "\n".join(lines) + "\n"


def _row(row: BaseModel) -> Iterator[str]:
    for name in type(row).model_fields:
        value = getattr(row, name)
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {json.dumps(one)}" for key, one in value.items())
            yield f"{name} = {{ {inner} }}"
        elif isinstance(value, str):
            yield f"{name} = {json.dumps(value)}"
        else:
            yield f"{name} = {value}"
