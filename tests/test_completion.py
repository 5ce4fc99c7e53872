"""Completion in the shells themselves: types a line and Tab into a terminal, and reads the result."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from kdump.cli import COMMANDS, cli
from kdump.command_line.completion import VARIABLE

START = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}
PREPARE = {
    "bash": "PS1=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off';"
    " source <(kdump completion bash)\n",
    "zsh": "PS1=; unsetopt zle_bracketed_paste; bindkey -e; autoload -U compinit; compinit -D -u;"
    ' eval "$(kdump completion zsh)"\n',
    "fish": "function fish_prompt; end; kdump completion fish | source\n",
}
LINES = [
    ("kdump ver", "kdump verify"),
    ("kdump verify --igno", "kdump verify --ignore"),
    ("kdump verify --fail-on w", "kdump verify --fail-on warning"),
    ("kdump verify --ignore junk-bytes,offset-i", "kdump verify --ignore junk-bytes,offset-invalid"),
    ("kdump inspect --tz Europe/Berl", "kdump inspect --tz Europe/Berlin"),
    ("kdump verify broker\\ one/pay", "kdump verify broker one/payments-0"),
    ("kdump verify x --baseline 'ear", "kdump verify x --baseline earlier.json"),
    ("kdump ls broker\\ one --topic led", "kdump ls broker one --topic ledger"),
]


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, shell: str, directory: Path) -> None:
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        environment = {"PATH": path, "HOME": str(directory), "TERM": "vt100", "LC_ALL": "C.UTF-8"}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execvpe(shell, [shell, *START[shell]], environment)
        self.ready = select.poll()
        self.ready.register(self.terminal, select.POLLIN)
        self.send(PREPARE[shell] + "printf '<%s>' '<ready>'\n")
        self.until("<<ready>>")

    def send(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, wanted: str) -> str:
        """Return the output up to this text."""
        said, end = "", time.monotonic() + 20
        while wanted not in said:
            assert time.monotonic() < end, said
            if self.ready.poll(200):
                said += os.read(self.terminal, 4096).decode(errors="replace")
        return said

    def completed(self, text: str) -> str:
        """Return the words of a line after Tab was pressed at its end, separated by spaces."""
        self.send(f"{text}\t")
        # The line becomes the arguments of printf, which prints the words as the shell parses them.
        self.send("\x01printf '<%s' '<'; printf '%s ' \x05; printf '>%s' '>'\n")
        return self.until(">>").rpartition("<<")[2].partition(">>")[0].strip().removesuffix("/")

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.mark.parametrize("shell", START)
def test_tab(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    for name in ("payments-0", "ledger-0"):
        (tmp_path / "broker one" / name).mkdir(parents=True)
    (tmp_path / "earlier.json").touch()
    terminal = Terminal(shell, tmp_path)
    try:
        assert [terminal.completed(line) for line, _ in LINES] == [completed for _, completed in LINES]
    finally:
        terminal.close()


def words(line: str) -> list[str]:
    *given, incomplete = line.split(" ")
    complete = get_completion_class("bash")
    assert complete is not None
    return [item.value for item in complete(cli, {}, "kdump", VARIABLE).get_completions(given, incomplete)]


def test_what_is_offered() -> None:
    assert words("") == list(COMMANDS)
    assert words("inspect --key a --key") == ["--key", "--key-regex", "--key-format", "--key-schema"]
    assert words("verify --ignore crc-mismatch,offset-i") == ["crc-mismatch,offset-invalid"]
    assert words("inspect --decoder off") == ["offsets"]
    assert all(words(f"{command} --h") for command in COMMANDS)


def test_topics_have_names_of_topics(tmp_path: Path) -> None:
    for name in ("ledger-0", "$(reboot)-0", "a b-0", "ledger-1", "x\ny-0", "nothing"):
        (tmp_path / "disks" / "broker-1" / name).mkdir(parents=True)
    assert words(f"ls {tmp_path}/disks/broker-1 --topic ") == ["ledger"]
    assert words(f"ls {tmp_path}/disks --topic ") == ["ledger"]
