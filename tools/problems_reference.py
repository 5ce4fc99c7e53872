"""Prints docs/problems.md: the problems of the catalogue that are not findings of verify."""

from __future__ import annotations

from kdump.problems.catalogue import OTHERS, Declaration, action, all_problems

HEAD = """# The other problems

What `restart-plan`, `doctor`, `retention` and `space` report besides the [findings of verify](findings.md). This page
is generated from the catalogue (`make docs`). In a text, {name} stands for a value, and DIR, TOPIC, PARTITION, OFFSET
and the like for what the problem is about. An action that depends on a fact begins with it: where the fact is known,
kdump prints the action without it, or not at all.
"""
TITLES = {
    "startup": "What stops a startup, and what a startup does to data",
    "doctor": "What several questions together show",
    "retention": "What keeps segments longer than the configs require",
    "space": "What frees space, and what must not be deleted",
}


def section(problem: Declaration) -> str:
    """Return the section of a problem."""
    lines = [f"### {problem.code}", ""]
    titles = [problem.title or problem.meaning, *problem.titles.values()]
    lines += [
        f"- {problem.severity.capitalize() or 'Problem'}: {title}." for title in dict.fromkeys(filter(None, titles))
    ]
    lines += [f"- Impact: {text}." for text in filter(None, (problem.consequence, *problem.impacts.values()))]
    if problem.actions:
        lines += ["- Actions:", *(f"    - {each.conditional}." for each in problem.actions)]
    if problem.actions and (problem.severity == "error" or problem.trials):
        lines.append(problem.tried)
    lines += [f"- Never: {action(text).conditional}." for text in problem.never]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for file in OTHERS:
        parts.append(f"## {TITLES[file]}\n")
        parts += [section(problem) for problem in all_problems().values() if problem.family == file]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
