"""One launch of a kernel that is described as data (``mqa_ref.kernel.raw_launch``) in the emulator."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from mqa_ref import emulator
from mqa_ref.emulator.memory import Share
from mqa_ref.emulator.tensormap import FLOAT32, SWIZZLE_128, SWIZZLE_NONE, UINT8, encode_tensor_map
from mqa_ref.errors import EmulatorError, Fault, InputError
from mqa_ref.kernel.raw_launch import ELEMENT_BYTES, Parameter, Pointer, RawLaunch, Scalar, TensorMap

_KINDS = {"uint8": UINT8, "float32": FLOAT32}
_SWIZZLES = {0: SWIZZLE_NONE, 128: SWIZZLE_128}


def run_raw(
    code: emulator.Code,
    raw: RawLaunch,
    *,
    budget: int,
    shares: Mapping[str, Share] | None = None,
    **how: Any,
) -> tuple[emulator.Outcome, emulator.Allocation]:
    """Place the buffers, launch, and return what happened and the output buffer.

    ``code``: the decoded PTX. ``shares``: which bytes of a read-only buffer a CTA has a reason to read, by the
    buffer's name. ``budget``: warp instructions a CTA may execute. ``how``: machine, interleaving and engine, as for
    ``emulator.run_grid``. Raises InputError when the launch does not fit the kernel's parameters, EmulatorError for
    what the emulator does not model.
    """
    memory = emulator.GlobalMemory()
    for buffer in raw.buffers:
        share = (shares or {}).get(buffer.name)
        memory.add(buffer.name, buffer.data.copy(), writable=buffer.writable, share=share)
    places = {one.name: one for one in memory.allocations}
    space = bytearray(code.program.parameter_bytes)
    declared = code.program.parameters
    packed = [_pack(one, {name: place.address for name, place in places.items()}) for one in raw.parameters]
    if [len(one) for one in packed] != [parameter.size for parameter in declared]:
        sizes = ", ".join(str(parameter.size) for parameter in declared)
        raise InputError([Fault("parameters", ", ".join(str(len(one)) for one in packed), f"sizes {sizes}")])
    for parameter, value in zip(declared, packed, strict=True):
        space[parameter.offset : parameter.offset + parameter.size] = value
    call = emulator.LaunchCall(raw.grid, raw.block, raw.shared_bytes, bytes(space), raw.overlaps)
    outcome = emulator.run_grid(code, call, memory, budget=budget, **how)
    return outcome, places[raw.output]


def _pack(one: Parameter, addresses: Mapping[str, int]) -> bytes:
    if isinstance(one, Scalar):
        return one.value.to_bytes(one.size, "little")
    if isinstance(one, Pointer):
        return struct.pack("<Q", 0 if one.buffer is None else addresses[one.buffer] + one.offset)
    return descriptor(one, addresses[one.buffer])


def descriptor(one: TensorMap, buffer_address: int) -> bytes:
    """The 128 bytes of a tensor map whose buffer lies at an address."""
    if one.element not in _KINDS:
        raise EmulatorError(f"tensor map: element {one.element} is not modelled")
    decoded = emulator.TensorMap(
        address=buffer_address + one.offset,
        element_bytes=ELEMENT_BYTES[one.element],
        sizes=one.sizes,
        strides=one.strides,
        box=one.box,
        swizzle=_SWIZZLES[one.swizzle],
    )
    return encode_tensor_map(decoded, _KINDS[one.element])
