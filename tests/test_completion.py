"""Completion in the shells themselves: types a line and Tab into a terminal, and reads the result."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdump.cli import COMMANDS, cli
from kdump.command_line.completion_candidates import SHELLS, candidates, script

ROOT = Path(__file__).parent.parent
START = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
PREPARE = {
    "bash": "PS1=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off';"
    " source <(kdump completion bash)\n",
    "zsh": "PS1=; unsetopt zle_bracketed_paste; bindkey -e; autoload -U compinit; compinit -D -u;"
    ' eval "$(kdump completion zsh)"\n',
    "fish": "function fish_prompt; end; kdump completion fish | source\n",
}
LINES = [
    ("kdump ver", "kdump verify"),
    ("~/kdump ver", "~/kdump verify"),
    ("kdump verify --igno", "kdump verify --ignore"),
    ("kdump verify --fail-on w", "kdump verify --fail-on warning"),
    ("kdump verify --fail-on=w", "kdump verify --fail-on=warning"),
    ("kdump verify --ignore junk-bytes,offset-i", "kdump verify --ignore junk-bytes,offset-invalid"),
    ("kdump inspect --tz Europe/Berl", "kdump inspect --tz Europe/Berlin"),
    ("kdump verify broker\\ one/pay", "kdump verify broker one/payments-0"),
    ("kdump verify --baseline=ear", "kdump verify --baseline=earlier.json"),
    ("kdump salvage x --out=bro", "kdump salvage x --out=broker one"),
    ("kdump verify x --baseline 'ear", "kdump verify x --baseline earlier.json"),
    ("kdump ls broker\\ one --topic led", "kdump ls broker one --topic ledger"),
]


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, shell: str, directory: Path) -> None:
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        home = directory / "home"
        home.mkdir()
        (home / "kdump").symlink_to(Path(sys.executable).parent / "kdump")
        environment = {"PATH": path, "HOME": str(home), "TERM": "vt100", "LC_ALL": "C.UTF-8"}
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
        assert [terminal.completed(line) for line, _ in LINES] == [
            said.replace("~", str(tmp_path / "home")) for _, said in LINES
        ]
    finally:
        terminal.close()


def words(line: str) -> list[str]:
    *given, incomplete = line.split(" ")
    return [item.value for item in candidates(cli, COMMANDS, given, incomplete)]


def test_what_is_offered() -> None:
    assert words("") == list(COMMANDS)
    assert words("-") == ["--version", "--help"]
    assert words("verify --json --js") == []  # a flag is offered only once
    assert words("inspect --key a --key") == ["--key", "--key-regex", "--key-format", "--key-schema"]
    assert words("verify -- --js") == ["--js"]  # a file may have that name
    assert words("browse x ") == []
    assert words("ls -n ") == []
    assert words("inspect --decoder off") == ["offsets"]
    assert words("nonsense ") == []
    assert all(words(f"{command} --h") for command in COMMANDS)


def test_topics_have_names_of_topics(tmp_path: Path) -> None:
    for name in ("ledger-0", "$(reboot)-0", "a b-0", "ledger-1", "x\ny-0", "nothing"):
        (tmp_path / "disks" / "broker-1" / name).mkdir(parents=True)
    assert words(f"ls {tmp_path}/disks/broker-1 --topic ") == ["ledger"]
    assert words(f"ls {tmp_path}/disks --topic ") == ["ledger"]


def test_a_command_that_the_table_does_not_have_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {line: words(line) for line in ("verify --", "schema Batch", "cluster --show sum", "inspect --as ")}
    monkeypatch.setattr("kdump.command_line.completion_candidates.shipped", dict)
    assert offered == {line: words(line) for line in offered}
    assert all(offered.values())


def test_the_table_is_what_click_knows() -> None:
    from tools.completion_words import text

    assert (ROOT / "kdump" / "shells" / "words.json").read_text() == text()


def test_tab_imports_no_command() -> None:
    code = "import sys; from kdump.cli import main; sys.argv = ['kdump', 'verify', '--ignore', 'crc']; main()"
    code += "; print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "_KDUMP_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("part\tcrc-mismatch\t")
    assert not {"kdump.questions.verify.command", "kdump.check", "kdump.log", "rich"} & set(done.stderr.split())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(shell: str) -> None:
    done = subprocess.run([Path(sys.executable).parent / "kdump", "completion", shell], capture_output=True, check=True)
    assert done.stdout.decode() == script(shell)
