"""The command ``mqa-ref``: what it is asked for, turned into calls of the package, and answers turned into
exit codes."""

from mqa_ref.cli.app import main

__all__ = ["main"]
