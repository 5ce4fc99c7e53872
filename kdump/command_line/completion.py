"""`kdump completion`: prints a shell's completion script."""

from __future__ import annotations

import click

from kdump.command_line.completion_candidates import SHELLS, script

EXAMPLES = """
\b
Examples:
  eval "$(kdump completion bash)"                             # in ~/.bashrc
  eval "$(kdump completion zsh)"                              # in ~/.zshrc, after compinit
  kdump completion fish > ~/.config/fish/completions/kdump.fish

\b
Exit status: 0 on success, 2 for a usage error.
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the script with which bash, zsh or fish complete commands, options, values, topics and paths when you press
    Tab. Installing kdump puts the scripts where the shells look for them, but not if it is installed in a virtual
    environment: use this command there."""
    click.echo(script(shell), nl=False)
