"""The builtin kernel's device code as files of a folder of the user's, so that there is something to change and test.

Every module becomes ``paged_mqa_NAME.py`` and imports its neighbours by that name. The description of a shape
(``mqa_ref.kernel.config``) stays in the package: it is no device code.
"""

from __future__ import annotations

import re
from importlib.resources import files

MODULES = ("sm100", "roles", "score", "epilogue", "ring", "walk", "accumulators")
"""What runs on the GPU, the module with the class first."""
PREFIX = "paged_mqa_"
CLASS = "PagedMqaLogitsSm100"
MAIN = f"{PREFIX}{MODULES[0]}.py"
"""The file with the class."""

_IMPORT = re.compile(rf"^from mqa_ref\.kernel\.({'|'.join(MODULES)}) import", re.MULTILINE)


def own_copy() -> dict[str, str]:
    """File name -> text; the bits of the copy are those of the builtin kernel."""
    folder = files("mqa_ref.kernel")
    return {
        f"{PREFIX}{name}.py": _IMPORT.sub(
            rf"from {PREFIX}\1 import", (folder / f"{name}.py").read_text(encoding="utf-8")
        )
        for name in MODULES
    }
