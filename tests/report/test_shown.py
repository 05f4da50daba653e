from __future__ import annotations

import pytest

from mqa_ref.report.shown import command_message, command_property, markdown, one_line, plain, xml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, two\nlines\tand a tab", "plain text, two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("over\rwritten\x08\x00", "over\\x0dwritten\\x08\\x00"),
        ("a\u202eb\u2028c\x9bd", "a\\x202eb\\x2028c\\x9bd"),
        ("::error::no\n  ::warning::no\n##[error]no", "| ::error::no\n  | ::warning::no\n| ##[error]no"),
        ("a::b", "a::b"),
    ],
)
def test_for_a_terminal(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_on_one_line() -> None:
    assert one_line("a\n  ::b \x1b") == "a | ::b \\x1b"


def test_for_xml() -> None:
    assert xml("a\x00b\x1bc\ud800d\ufffee\tf\n") == "a�b�c�d�e\tf\n"


def test_for_markdown() -> None:
    assert markdown("<b>|*_`[x](y)\n# z") == r"&lt;b&gt;\|\*\_\`\[x\]\(y\) \# z"
    assert markdown("@team &amp; -") == r"\@team &amp;amp; \-"


def test_for_a_workflow_command() -> None:
    assert command_message("50 %\nnext") == "50 %25%0Anext"
    assert command_property("a:b,c%") == "a%3Ab%2Cc%25"
