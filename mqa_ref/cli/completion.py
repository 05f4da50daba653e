"""``mqa-ref completion``: the script that makes a shell complete the commands and options."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> int:
    """Print the completion script of a SHELL; for bash: source it in ~/.bashrc."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    click.echo(made(context.find_root().command, {}, "mqa-ref", "_MQA_REF_COMPLETE").source())
    return 0
