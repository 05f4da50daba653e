"""Compiling a kernel that keeps the contract of ``PagedMqaLogitsSm100``, on a machine with no GPU and no driver.

The compiler is CuTe DSL. It is imported on first use only, and it is told the architecture for the length of one
compilation, whatever GPU the machine has and whatever ``CUTE_DSL_*`` variables say; no file stays behind.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from mqa_ref.errors import Fault, InputError, NotAvailable, Unsupported
from mqa_ref.flow import Flow

ARCH = "sm_100a"
PREFIX = "mqa"
_LOCK = threading.RLock()

ArgumentKind = Literal["tensor", "int32", "stream"]


@dataclass(frozen=True)
class ArgumentLayout:
    """How the host function takes one argument: a pointer to a struct (tensor) or to a value (int32, stream).

    A tensor's struct is the 8-byte data pointer, then the sizes of ``shape_modes`` and the strides (in elements) of
    ``stride_modes``, integers of ``shape_bits`` and ``stride_bits`` with natural alignment; all other sizes and
    strides are constants of the code.
    """

    name: str
    kind: ArgumentKind
    shape_modes: tuple[int, ...] = ()
    stride_modes: tuple[int, ...] = ()
    shape_bits: int = 32
    stride_bits: int = 64


@dataclass(frozen=True)
class CompiledKernel:
    """What the compiler made of one kernel class at one static shape.

    ``ptx``: text for sm_100a, with the source line of each instruction (``.loc``). ``cubin``: ELF for the GPU.
    ``host_object``: relocatable ELF for this machine, the host function and the cubin in it. Its entry points are
    ``host_symbol(void **arguments, int32 count)``, where a pointer to the int32 result follows the pointers to
    ``arguments``, and ``init_symbol`` and ``load_symbol``, which load the cubin. ``options``: the constructor
    arguments, dtypes aside.
    """

    ptx: str
    cubin: bytes
    host_object: bytes
    prefix: str
    function_name: str
    arguments: tuple[ArgumentLayout, ...]
    flow: Flow
    options: Mapping[str, Any]

    @property
    def host_symbol(self) -> str:
        """The host function."""
        return f"_mlir_{self.prefix}__mlir_ciface_{self.function_name}"

    @property
    def init_symbol(self) -> str:
        """Loads the library: ``void (*)(void **)`` with ``{cudaLibrary_t **, cudaError_t *}``."""
        return f"_mlir_{self.prefix}_cuda_init"

    @property
    def load_symbol(self) -> str:
        """Prepares one device: ``void (*)(void **)`` with ``{cudaLibrary_t **, int32 *device, cudaError_t *}``."""
        return f"_mlir_{self.prefix}_cuda_load_to_device"


def compile_kernel(
    factory: Callable[..., Any],
    *,
    page: int,
    num_heads: int,
    head_dim: int,
    next_n: int,
    num_sms: int,
    flow: Flow,
    **options: Any,
) -> CompiledKernel:
    """Compile ``factory(block_kv=128, phys_block_kv=page, ...)``; takes about a second.

    ``factory``: a class (or function) with the constructor arguments of ``PagedMqaLogitsSm100``. ``options``: any
    further constructor arguments, passed as they are; a constructor that takes ``arch`` gets it, and whatever it is set
    to, the code is compiled for sm_100a. Raises InputError for an argument that the constructor does not have,
    NotAvailable without nvidia-cutlass-dsl; what the constructor (InputError, Unsupported) and what the compiler
    raises comes through.
    """
    cutlass = import_compiler()
    dtypes = {"fp32": cutlass.Float32, "fp16": cutlass.Float16, "bf16": cutlass.BFloat16}
    static = {
        "block_kv": 128,
        "phys_block_kv": page,
        "num_heads": num_heads,
        "head_dim": head_dim,
        "next_n": next_n,
        "num_sms": num_sms,
        **({"arch": ARCH} if "arch" in inspect.signature(factory).parameters else {}),
        **options,
    }
    formats = {"epi_dtype": dtypes[flow.epi], "acc_dtype": dtypes[flow.acc], "output_dtype": dtypes[flow.out]}
    _refuse_unknown(factory, static | formats)
    with _LOCK, _quiet():
        kernel = factory(**static, **formats)
        tensors = _fake_tensors(
            cutlass, page, next_n * num_heads, head_dim, dtypes[flow.epi], dtypes[flow.out]
        )
        with tempfile.TemporaryDirectory() as folder, _target_arch():
            compiled = cutlass.cute.compile(
                kernel,
                *tensors.values(),
                cutlass.Int32(1),
                cutlass.Int32(1),
                cutlass.cute.runtime.make_fake_stream(),
                options=f"--keep-ptx --keep-cubin --generate-line-info --dump-dir {folder}",
            )
            return CompiledKernel(
                ptx=_FOLDERS.sub(r'\1"\2"', str(compiled.artifacts.PTX)),
                cubin=bytes(compiled.artifacts.CUBIN),
                host_object=bytes(compiled.dump_to_object(PREFIX)),
                prefix=PREFIX,
                function_name=str(compiled.function_name),
                arguments=_argument_layouts(compiled.c_header_arguments, tuple(tensors.values())),
                flow=flow,
                options=static,
            )


def import_compiler() -> Any:
    """The package ``cutlass``. Raises NotAvailable if it is not installed."""
    with _LOCK, _quiet():
        try:
            import cutlass
            import cutlass.cute.runtime
        except ImportError as error:
            raise NotAvailable(f"compiling needs the package nvidia-cutlass-dsl: {error}") from error
        return cutlass


def _refuse_unknown(factory: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    parameters = inspect.signature(factory).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = {parameter.name for parameter in parameters}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        expected = "an argument of the kernel's constructor: " + ", ".join(sorted(known))
        raise InputError(Fault(name, repr(arguments[name]), expected) for name in unknown)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _target_arch() -> Iterator[None]:
    """The compiler's own setting, not its environment variable (read at import) nor its option (no host object)."""
    from cutlass.cutlass_dsl import CuTeDSL

    settings = CuTeDSL._get_dsl().envar
    before = settings.arch
    settings.arch = ARCH
    try:
        yield
    finally:
        settings.arch = before


def _fake_tensors(
    cutlass: Any, page: int, rows: int, head_dim: int, weight_dtype: Any, out_dtype: Any
) -> dict[str, Any]:
    """The tensors of the contract without data: batch, pages, columns and table width are dynamic.

    Alignments are those of any allocation that TMA can read (16 bytes); ``logits`` need only their own element's.
    """
    cute, runtime = cutlass.cute, cutlass.cute.runtime
    dynamic = cute.sym_int

    def compact(dtype: Any, *shape: Any, align: int = 4) -> Any:
        order = tuple(reversed(range(len(shape))))
        return runtime.make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=align)

    def strided(dtype: Any, shape: Any, stride: Any, align: int) -> Any:
        return runtime.make_fake_tensor(dtype, shape, stride=stride, assumed_align=align)

    return {
        "kv_fused": compact(cutlass.Uint8, dynamic(), page * (head_dim + 4), align=16),
        "b": strided(cutlass.Uint8, (rows, head_dim, dynamic()), (head_dim, 1, rows * head_dim), 16),
        "weights": strided(weight_dtype, (rows, dynamic()), (1, rows), 16),
        "logits": strided(out_dtype, (dynamic(), dynamic()), (cute.sym_int64(), 1), out_dtype.width // 8),
        "block_table": compact(cutlass.Int32, dynamic(), dynamic()),
        "context_lens": compact(cutlass.Int32, dynamic()),
        "schedule_meta": compact(cutlass.Int32, dynamic(), 2),
    }


def _argument_layouts(header: Any, tensors: tuple[Any, ...]) -> tuple[ArgumentLayout, ...]:
    """Read the argument layouts out of the C declarations the compiler would export.

    The declarations tell how many sizes and strides a tensor passes; which modes they are of is in the masks of the
    tensors that were compiled for, in the order of the arguments. The two must agree.
    """
    if header.error_msg is not None:
        raise Unsupported(f"the compiler cannot describe the kernel's arguments: {header.error_msg}")
    structs = {}
    for text in header.declarations:
        fields = {field: (int(bits), int(count)) for bits, field, count in _FIELD.findall(text)}
        structs[text.rsplit("}", 1)[1].strip(" ;\n")] = fields
    masks = iter(tensors)
    layouts = []
    for argument in header.arguments:
        kind, name = argument.replace("*", " * ").split()[0], argument.replace("*", " ").split()[-1]
        if kind in structs:
            layouts.append(_tensor_layout(name, structs[kind], next(masks)))
        elif kind in _SCALARS:
            layouts.append(ArgumentLayout(name, _SCALARS[kind]))
        else:
            raise Unsupported(f"the kernel takes an argument that is outside the contract: {argument}")
    return tuple(layouts)


def _tensor_layout(name: str, fields: Mapping[str, tuple[int, int]], tensor: Any) -> ArgumentLayout:
    shape_bits, shapes = fields.get("dynamic_shapes", (32, 0))
    stride_bits, strides = fields.get("dynamic_strides", (64, 0))
    shape_modes = tuple(mode for mode, dynamic in enumerate(tensor.dynamic_shapes_mask) if dynamic)
    stride_modes = tuple(mode for mode, dynamic in enumerate(tensor.dynamic_strides_mask) if dynamic)
    if (len(shape_modes), len(stride_modes)) != (shapes, strides):
        raise Unsupported(f"the compiled kernel takes {name} with {shapes} sizes and {strides} strides")
    return ArgumentLayout(name, "tensor", shape_modes, stride_modes, shape_bits, stride_bits)


_FOLDERS = re.compile(r'^(\s*\.file\s+\d+\s+)"(?:[^"\n]*/)?([^"/\n]*)"', re.MULTILINE)
"""A ``.file`` line: source files are told by their names alone, so that the same kernel is the same PTX everywhere."""
_FIELD = re.compile(r"int(\d+)_t (\w+)\[(\d+)\]")
_SCALARS: Mapping[str, ArgumentKind] = {"int32_t": "int32", "cudaStream_t": "stream"}
