"""Writes man/*.1: manual pages for kdump and each of its commands, from click's declarations."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap

from kdump import __version__
from tools.manual import ENVIRONMENT, Option, Page, overall, pages, shared_options, variables

DIRECTORY = Path(__file__).resolve().parents[1] / "man"
DATE = "2026-11-22"
STATUS = re.compile(r"(?:^|[,;:] (?:or )?)(\d)\b:?(?= |,|$)")
CODE = re.compile(r"`([^`]+)`")


def escaped(text: str) -> str:
    """Escape text for roff: nothing is taken as a request or an escape, an ASCII hyphen stays one, and an ellipsis
    becomes three dots, for terminals without that character."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    text = "".join(each if ord(each) < 128 else f"\\[u{ord(each):04X}]" for each in text)
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))


def prose(text: str) -> str:
    """Return a paragraph in lines of roff's usual width; text between backticks is bold."""
    lines = wrap(text, 70, break_long_words=False, break_on_hyphens=False)
    return CODE.sub(lambda match: f"\\fB{match[1]}\\fR", escaped("\n".join(lines)))


def title(page: Page) -> str:
    name = f"kdump-{page.name}" if page.name else "kdump"
    head = f'.TH {escaped(name.upper())} 1 "{DATE}" "kdump {__version__}" "kdump manual"'
    return head + "\n.nh\n.ad l"  # no hyphenation, left-aligned


def synopsis(usage: str) -> str:
    words = [word for word in usage.split() if word]
    bold = [word for word in words if word.islower() and "[" not in word and "|" not in word and "{" not in word]
    rest = words[len(bold) :]
    return f"\\fB{escaped(' '.join(bold))}\\fR " + " ".join(f"\\fI{escaped(word)}\\fR" for word in rest)


def option(each: Option) -> str:
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in each.names)
    value = f" \\fI{escaped(each.metavar)}\\fR" if each.metavar else ""
    return f".TP\n{names}{value}\n{prose(each.help)}"


def section(name: str, *parts: str) -> str:
    return "\n".join([f".SH {name}", *parts])


def reference(name: str) -> str:
    return f"\\fB{escaped('kdump-' + name if name else 'kdump')}\\fR(1)"


def status(text: str) -> list[str]:
    """Return the paragraphs on exit statuses: one item per status, after the text that precedes the first."""
    before, *each = STATUS.split(text)
    parts = [prose(before[0].upper() + before[1:] + ":")] if before else []
    for number, said in zip(each[::2], each[1::2]):
        what = said.strip(" .") or "done"
        parts.append(f".TP\n\\fB{number}\\fR\n{prose(what[0].upper() + what[1:] + '.')}")
    return parts


def environment(more: dict[str, str]) -> str:
    rows = (ENVIRONMENT | more).items()
    return section("ENVIRONMENT", *(f".TP\n\\fB{name}\\fR\n{prose(said)}" for name, said in rows))


def manual(page: Page, others: list[Page]) -> str:
    """Return one manual page; kdump's own lists the `others`."""
    name = f"kdump-{page.name}" if page.name else "kdump"
    parts = [title(page), section("NAME", f"{escaped(name)} \\-\n{prose(lead(page.summary))}")]
    parts.append(section("SYNOPSIS", synopsis(page.usage)))
    described = "\n.PP\n".join(map(prose, [*page.description, *page.notes]))
    parts.append(section("DESCRIPTION", described))
    if others:
        listed = [f".TP\n{reference(each.name)}\n{prose(each.summary)}" for each in others]
        parts.append(section("COMMANDS", *listed))
    parts.append(section("OPTIONS", *map(option, page.own_options)))
    if page.common:
        names = ", ".join(f"`{name}`" for name in page.common)
        parts[-1] += f"\n.PP\n{prose(f'And as in most commands, see kdump(1): {names}.')}"
    if others:
        shared, about, options = shared_options()
        parts.append(section(shared.upper(), prose(about), *map(option, options)))
    if page.status:
        parts.append(section("EXIT STATUS", *status(page.status)))
    parts.append(environment(variables() if others else {}))
    examples = page.examples or [line for each in others for line in each.examples[:1]]
    if examples:
        parts.append(section("EXAMPLES", ".EX", *map(escaped, examples), ".EE"))
    seen = [each.name for each in others] or ["", *page.related]
    parts.append(section("SEE ALSO", ",\n".join(map(reference, seen))))
    return "\n".join(parts) + "\n"


def lead(summary: str) -> str:
    """Return a summary in the form that apropos shows after the name: lower case, without a period."""
    text = summary.rstrip(".")
    return text[0].lower() + text[1:]


def all_pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    each = list(pages())
    return {"kdump.1": manual(overall(), each), **{f"kdump-{page.name}.1": manual(page, []) for page in each}}


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    found = all_pages()
    for stale in set(DIRECTORY.glob("*.1")) - {DIRECTORY / name for name in found}:
        stale.unlink()
    for name, text in found.items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")
