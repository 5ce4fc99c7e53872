"""Prints docs/problems.md: the problems of the catalogue that are not findings of verify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import pairwise

from kdump.problems.catalogue import OTHERS, Declaration, action, all_problems
from tools.findings_reference import Shared, action_lines, as_in, shared_actions

HEAD = """# The other problems

What `restart-plan`, `doctor`, `retention` and `space` report besides the [findings of verify](findings.md). {name}
stands for a value; DIR, TOPIC and the like for what the problem is about. An action that depends on a fact begins with
it: where the fact is known, kdump prints the action without it, or not at all.
"""
TITLES = {
    "startup": "What stops a startup, and what a startup does to data",
    "doctor": "What several questions together show",
    "retention": "What keeps segments longer than the configs require",
    "space": "What frees space, and what must not be deleted",
}


MANY = 10
"""Problems of a family with the same warning: it is stated once, before them."""


SAME, KEPT = 5, 2
"""More words than these with which two titles of a problem begin are written once, but for the last ones."""


def alternatives(titles: list[str]) -> list[str]:
    """Return the titles of a problem, each without the words with which the one before begins, too."""
    texts = titles[:1]
    for before, title in pairwise(titles):
        words, count = title.split(), 0
        while words[count : count + 1] == before.split()[count : count + 1] != []:
            count += 1
        again = " ".join(words[count - KEPT :])
        texts.append(f"… {again}" if count > SAME and count < len(words) else title)
    return texts


def section(problem: Declaration, stated: Collection[str], shared: Shared, said: dict[str, str]) -> str:
    """Return the section of a problem. `stated`: warnings that stand before all of them; `said`: the problems that had
    the texts so far."""
    lines = [f"### {problem.code}", ""]
    titles = [problem.title or problem.meaning, *problem.titles.values()]
    kind = problem.severity.capitalize() or "Problem"
    lines += [f"- {kind}: {title}." for title in alternatives([*dict.fromkeys(filter(None, titles))])]
    impacts = filter(None, (problem.consequence, *problem.impacts.values()))
    lines += [f"- Impact: {as_in(said, problem.code, text)}." for text in impacts]
    if problem.actions:
        lines += action_lines(problem, shared, "findings.md")
    never = [as_in(said, problem.code, action(text).conditional) for text in problem.never if text not in stated]
    lines += [f"- Never: {text}." for text in dict.fromkeys(never)]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page."""
    others = [problem for problem in all_problems().values() if problem.family in OTHERS]
    shared = shared_actions(all_problems().values())
    parts, said = [HEAD], dict[str, str]()
    for file in OTHERS:
        parts.append(f"## {TITLES[file]}\n")
        problems = [problem for problem in others if problem.family == file]
        nevers = Counter(text for problem in problems for text in problem.never)
        stated = [text for text, count in nevers.items() if count >= MANY]
        parts += [f"Never, whichever it is: {action(text).conditional}.\n" for text in stated]
        parts += [section(problem, stated, shared, said) for problem in problems]
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
