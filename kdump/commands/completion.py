"""`kdump completion`: prints a shell's completion script."""

from __future__ import annotations

import click

from kdump.commands.completing import SHELLS, script

EXAMPLES = """
\b
Examples:
  eval "$(kdump completion bash)"                             # in ~/.bashrc
  eval "$(kdump completion zsh)"                              # in ~/.zshrc, behind compinit
  kdump completion fish > ~/.config/fish/completions/kdump.fish

\b
Exit status: 0, or 2: usage.
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the script by which bash, zsh or fish complete commands, options, values, topics and paths at Tab. The
    package puts the scripts where shells look for them; in a virtual environment they do not look, and this helps."""
    click.echo(script(shell), nl=False)
