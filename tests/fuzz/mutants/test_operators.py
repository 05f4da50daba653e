"""What each operator makes of a statement, worked out by hand; and that nothing else in the text changes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mqa_ref.emulator import parse
from mqa_ref.fuzz.mutants import arithmetic, machinery, select
from mqa_ref.fuzz.mutants.arithmetic import Operator
from mqa_ref.fuzz.mutants.mutant import Mutant
from mqa_ref.fuzz.mutants.statements import read, replaced

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 k_param_0)
{
	.reg .pred 	%p<9>;
	.reg .b32 	%r<99>;
	.reg .b64 	%rd<99>;
"""
TAIL = "\n$END:\n\tret;\n}\n"


def made(operator: Operator, *statements: str) -> set[str]:
    """The new texts of the last statement, or of several lines joined by " & "."""
    listing = read(HEAD + "\n".join(f"\t{one}" for one in statements) + TAIL)
    index = len(statements) - 1
    found = set()
    for _, _, change in operator(listing, index):
        found.add(change if isinstance(change, str) else " & ".join(change.values()))
    return found


@pytest.mark.parametrize(
    ("operator", "statements", "expected"),
    [
        (arithmetic.swaps, ["add.s32 %r1, %r2, 7;"], {"sub.s32 %r1, %r2, 7;"}),
        (arithmetic.swaps, ["or.b32 %r1, %r2, %r3;"], {"and.b32 %r1, %r2, %r3;", "xor.b32 %r1, %r2, %r3;"}),
        (
            arithmetic.swaps,
            ["fma.rn.f32 %r1, %r2, %r3, %r4;"],
            {"mul.rn.f32 %r1, %r2, %r3;", "add.rn.f32 %r1, %r3, %r4;"},
        ),
        (arithmetic.relations, ["setp.lt.s32 %p1, %r2, 3;"], {"setp.le.s32 %p1, %r2, 3;", "setp.ge.s32 %p1, %r2, 3;"}),
        (arithmetic.relations, ["selp.b32 %r1, 5, %r2, %p1;"], {"selp.b32 %r1, %r2, 5, %p1;"}),
        (arithmetic.constants, ["shl.b32 %r1, %r2, 4;"], {"shl.b32 %r1, %r2, 5;", "shl.b32 %r1, %r2, 3;"}),
        (arithmetic.constants, ["add.s32 %r1, %r2, -1;"], {"add.s32 %r1, %r2, 0;", "add.s32 %r1, %r2, -2;"}),
        (arithmetic.constants, ["add.s32 %r1, %r2, 1;", "setp.eq.b32 %p1, %r1, 3;"], set()),
        (
            arithmetic.stages,
            ["add.s32 %r1, %r2, 1;", "setp.eq.b32 %p1, %r1, 3;"],
            {"setp.eq.b32 %p1, %r1, 4;", "setp.eq.b32 %p1, %r1, 2;", "add.s32 %r1, %r2, 0;"},
        ),
        (
            arithmetic.registers,
            ["sub.s32 %r1, %r5, %r7;"],
            {"sub.s32 %r1, %r4, %r7;", "sub.s32 %r1, %r5, %r6;", "sub.s32 %r1, %r7, %r5;"},
        ),
        (
            arithmetic.registers,
            ["mov.b64 {%r1, %r2}, %rd5;"],
            {"mov.b64 {%r1, %r2}, %rd4;", "mov.b64 {%r2, %r1}, %rd5;"},
        ),
        (
            arithmetic.predicates,
            ["@%p1 bra $END;"],
            {"@!%p1 bra $END;", "bra $END;", ";"},
        ),
        (arithmetic.predicates, ["not.pred %p1, %p2;"], {"mov.pred %p1, %p2;"}),
        (
            arithmetic.roundings,
            ["fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;"],
            {
                "{ .reg .b64 MU; mul.rn.f32x2 MU, %rd2, %rd3; add.rn.f32x2 %rd1, MU, %rd4; }",
                "{ fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4; and.b64 %rd1, %rd1, -4294967298; }",
            },
        ),
        (
            arithmetic.orders,
            ["mov.b32 %r9, 0;", "add.rn.f32 %r1, %r2, %r3;", "add.rn.f32 %r4, %r1, %r9;"],
            {"add.rn.f32 %r1, %r2, %r9; & add.rn.f32 %r4, %r1, %r3;"},
        ),
        (arithmetic.relus, ["abs.f32 %r1, %r2;"], {"mov.b32 %r1, %r2;", "neg.f32 %r1, %r2;"}),
        (machinery.fences, ["bar.sync 0;"], {";"}),
        (machinery.fences, ["griddepcontrol.wait;"], {";"}),
        (
            machinery.waits,
            ["mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 100;"],
            {"setp.eq.u32 %p1, 0, 0;"},
        ),
        (
            machinery.parities,
            ["mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 100;"],
            {
                f"{{ .reg .b32 MP; {made} mbarrier.try_wait.parity.shared.b64 %p1, [%r1], MP, 100; }}"
                for made in ("xor.b32 MP, %r2, 1;", "mov.b32 MP, 0;", "mov.b32 MP, 1;")
            },
        ),
        (
            machinery.byte_counts,
            ["mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], %r2;"],
            {
                f"{{ .reg .b32 MC; {made} mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], MC; }}"
                for made in ("add.s32 MC, %r2, 16;", "add.s32 MC, %r2, -16;", "shr.u32 MC, %r2, 1;", "mov.b32 MC, 0;")
            },
        ),
        (
            machinery.arrivals,
            ["mbarrier.arrive.shared.b64 %rd1, [%r1], %r2;"],
            {";", "{ " + "mbarrier.arrive.shared.b64 %rd1, [%r1], %r2; " * 2 + "}"},
        ),
        (
            machinery.addresses,
            ["ld.shared.b32 %r1, [%r2+8];"],
            {"ld.shared.b32 %r1, [%r2+12];", "ld.shared.b32 %r1, [%r2+4];"},
        ),
        (machinery.votes, ["elect.sync %r1|%p1, -1;"], {"elect.sync %r1|%p1, 2147483647;", "elect.sync %r1|%p1, -2;"}),
        (
            machinery.stores,
            ["setp.le.s32 %p1, %r1, %r2;", "@%p1 bra $END;", "st.global.b32 [%rd1], %r3;"],
            {
                *(";", "st.global.b32 [%rd1+4], %r3;", "st.global.b32 [%rd1-4], %r3;"),
                *("setp.lt.s32 %p1, %r1, %r2;", "setp.ne.b32 %p1, %r1, %r1;"),
            },
        ),
    ],
)  # fmt: skip
def test_what_becomes_of_a_statement(operator: Operator, statements: list[str], expected: set[str]) -> None:
    assert made(operator, *statements) == expected


TEXT = (
    HEAD
    + (
        "\tmov.u32 \t%r1, %tid.x;\n\tadd.s32 \t%r2, %r1, 1;\n\tsetp.eq.b32 \t%p1, %r2, 3;\n\tmov.b32 %r9, 0f3F800000;\n"
        "\t@%p1 bra \t$END;\n\tabs.f32 \t%r3, %r9;\n\tadd.rn.f32 \t%r4, %r3, %r9;\n\tadd.rn.f32 \t%r5, %r4, %r9;\n"
        "\t{ .reg .b32 X; mov.b32 X, %r5; }\n\tsetmaxnreg.inc.sync.aligned.u32 \t232;\n"
    )
    + TAIL
)


def changed_lines(before: str, after: str) -> set[int]:
    pairs = zip(before.split("\n"), after.split("\n"), strict=True)
    return {number for number, (one, other) in enumerate(pairs, 1) if one != other}


def test_every_mutant_parses_and_changes_its_own_lines_only() -> None:
    pool = select.pool(TEXT)
    assert len(pool) > 20
    for mutant in pool:
        text = replaced(TEXT, mutant.edits)
        parse(text)
        assert changed_lines(TEXT, text) == set(mutant.edits)
        assert mutant.line in mutant.edits


def test_hints_and_shared_lines_are_left_alone() -> None:
    lines = TEXT.split("\n")
    touched = {lines[line - 1] for mutant in select.pool(TEXT) for line in mutant.edits}
    assert not any("setmaxnreg" in one or "X;" in one for one in touched)


def ids(mutants: Iterable[Mutant]) -> list[str]:
    return [one.id for one in mutants]


def test_ids_are_one_for_each_and_do_not_change() -> None:
    pool = select.pool(TEXT)
    assert len(set(ids(pool))) == len(pool)
    assert ids(pool) == ids(select.pool(TEXT))


def test_the_choice_follows_from_the_seed_and_has_every_class_first() -> None:
    pool = select.pool(TEXT)
    kinds = {one.kind for one in pool}
    some = select.choose(pool, len(kinds), 1)
    assert {one.kind for one in some} == kinds
    assert ids(some) == ids(select.choose(pool, len(kinds), 1))
    assert ids(select.choose(pool, 20, 1))[: len(kinds)] == ids(some)
    assert ids(select.choose(pool, 20, 1)) != ids(select.choose(pool, 20, 2))
    assert sorted(ids(select.choose(pool, 10**6, 3))) == sorted(ids(pool))


def test_a_mutant_is_not_applied_to_another_text() -> None:
    mutant = select.pool(TEXT)[0]
    assert select.apply(mutant, TEXT) == replaced(TEXT, mutant.edits)
    with pytest.raises(ValueError, match="another PTX"):
        select.apply(mutant, TEXT.replace("\tmov.u32", "\n\tmov.u32"))
