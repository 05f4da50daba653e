"""The level "full": the kernel's options, shapes, flows, data and interleavings crossed in pairs.

No option, page size, page order or number of CTAs may change one bit of a valid logit (op.md, "Consequences
to model and to test"). The reference knows none of them, so that a combination that passes shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mqa_ref.flow import FLOWS, Flow
from mqa_ref.kernel.targets import CONTRACT_OPTIONS, Options
from mqa_ref.verification.pairwise import pairwise
from mqa_ref.verification.problems import NamedProblem, Recipe, make

SHAPES = ((64, 1), (32, 1), (16, 1), (64, 2), (8, 2), (48, 3), (32, 4), (16, 5), (40, 6))
"""(heads, next_n); their product is a multiple of 16, at most 256."""
SWITCHES = (
    "remove_kv_wait_in_epilogue",
    "early_tmem_copy",
    "smem_subpartition_opt",
    "max_kv_pipeline",
    "max_umma_pipeline",
    "enable_pdl",
)
FACTORS: Mapping[str, Sequence[Any]] = {
    "shape": SHAPES,
    "data": ("rms", "amax", "wide", "bits", "nan_keys", "special_scales", "overflow", "fma_ties"),
    "lengths": ((1,), (300, 0, 129), (257, 64), (129, 256), (513, 6), (64, 65, 383)),
    "max_w_in_reg": (0, 4, 16, 32),
    "num_sms": (1, 2, 5, 148),
    "interleaving": ("eager", "lazy", "random", "systematic"),
    "pages": ("in_order", "shuffled", "descending", "repeated"),
    "page": (32, 64, 128),
    "num_epi_subtiles": (1, 2, 4),
    "rest": ("zeros", "tight", "garbage"),
    **dict.fromkeys(SWITCHES, (False, True)),
}


def allowed(choice: Mapping[str, Any]) -> bool:
    """A TMEM load brings a multiple of four heads; and what is compiled for SM100 has 512 columns of TMEM, although a
    kernel that is told of SM107 (``arch``) takes 576 where two stages of two warp groups need more than 512."""
    heads, next_n = choice["shape"]
    if choice.get("arch") == "sm_107a" and choice["max_umma_pipeline"] and 128 < heads * next_n <= 144:
        return False
    subtiles = choice.get("num_epi_subtiles", 1)  # kernels described as data have no such option
    return bool(heads % subtiles == 0 and heads // subtiles % 4 == 0)


@lru_cache(maxsize=16)
def full(flow: str, options: Options = CONTRACT_OPTIONS) -> tuple[NamedProblem, ...]:
    """The problems of the level for one flow, or for all of them crossed with the rest ("all"), and for a kernel with
    these ``options``."""
    flows = FLOWS if flow == "all" else (flow,)
    factors = FACTORS
    if options != CONTRACT_OPTIONS:
        contract = dict(CONTRACT_OPTIONS)
        factors = {name: values for name, values in FACTORS.items() if name not in contract} | dict(options)
    found = pairwise({"flow": flows, **factors}, allowed, f"full/{flow}")
    names = tuple(name for name, _ in options)
    return tuple(_named(number, choice, names) for number, choice in enumerate(found))


def _named(number: int, choice: Mapping[str, Any], names: Sequence[str]) -> NamedProblem:
    heads, next_n = choice["shape"]
    options = {name: choice[name] for name in names}
    told = [name for name, value in options.items() if value is True]
    told += [f"{name} {value}" for name, value in options.items() if value is not True and value]
    recipe = Recipe(
        f"full-{number}",
        f"{choice['flow']}, {', '.join(told)}",
        choice["lengths"],
        choice["num_sms"],
        page=choice["page"],
        heads=heads,
        next_n=next_n,
        data=choice["data"],
        order=choice["pages"],
        rest=choice["rest"],
    )
    select = ("--level", "full", "--case", recipe.name)
    flow = Flow.parse(choice["flow"])
    return make(recipe, flow=flow, options=options, interleaving=choice["interleaving"], select=select)
