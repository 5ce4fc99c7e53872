"""Parses an expression. Errors have the position of the character at which it stops to be one."""

from __future__ import annotations

import re
import time
from datetime import timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from kdump.format.count_text import parse_size
from kdump.format.parse_time import ISO, parse_time
from kdump.log.expression.comparison import Comparison, number_of
from kdump.log.expression.terms import NUMBERS, Content, Expression, Flag, Not, Numeric, Several, Term, Topic

LONGEST = 10_000
"""Maximum number of characters of an expression."""
DEEPEST = 50
"""Maximum depth of parentheses and nots."""
FLAGS = ("isAborted", "isTransactional", "isControl")
CONTENT = ("key", "value", "header", "any")
FIELDS = (*CONTENT, "topic", *NUMBERS)
OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "~", "in")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.,]+(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?|-[0-9]+(?:ms|[smhdw])\b)
    | (?P<size>[0-9]+(?:[kKmMgG](?:i?[bB])?|[bB])\b)
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<sign>==|!=|<=|>=|[<>~()])
    | (?P<word>[A-Za-z_][\w-]*(?:\.(?:[\w-]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_STEP = re.compile(r"""\.(?:([\w-]+)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))""", re.DOTALL)


class ExpressionError(ValueError):
    """An expression cannot be parsed; `position` is the number of the character, from 0."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.text, self.position, self.reason = text, position, reason
        super().__init__(reason)

    @property
    def lines(self) -> str:
        """The error, then the expression (what is around the position) with a mark below the character."""
        start = max(0, self.position - 60)
        shown = re.sub(r"[^ -~\xa1-\uffff]", "?", self.text[start : start + 76])
        return f"{self.reason}\n  {shown}\n  {' ' * (self.position - start)}^"


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Moment(NamedTuple):
    """A time as it was typed: its first and last millisecond, and whether it is only a date."""

    first: int
    last: int
    is_date: bool


def parse(text: str, *, zone: tzinfo = timezone.utc, now: int | None = None) -> Expression:
    """Return the expression that a text is. `zone`: of times without one; `now`: what -2h refers to, epoch ms. Raises
    ExpressionError."""
    return _Parser(text, zone, round(time.time() * 1000) if now is None else now).expression()


def unquoted(text: str) -> str:
    """Return the text between quotes: a backslash escapes a quote or a backslash, and stays before all others."""
    quote = text[0]
    return re.sub(
        r"\\(.)", lambda match: match[1] if match[1] in (quote, "\\") else match[0], text[1:-1], flags=re.DOTALL
    )


class _Parser:
    def __init__(self, text: str, zone: tzinfo, now: int) -> None:
        self.text, self.zone, self.now = text, zone, now
        if len(text) > LONGEST:
            raise ExpressionError(text, LONGEST, f"an expression has at most {LONGEST} characters, not {len(text)}")
        self.at = 0
        self.token = self._next()

    def _next(self) -> _Token:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :]
            position = self.at + len(rest) - len(rest.lstrip())
            if position == len(self.text):
                return _Token("end", "", position)
            bad = self.text[position]
            if bad in "'\"":
                self._fail(position, "the text that begins here has no closing quote")
            hint = "; use == to compare" if bad == "=" else "; use and, or, not" if bad in "&|!" else ""
            self._fail(position, f"{bad!r} is not part of an expression{hint}")
        self.at = match.end()
        kind = str(match.lastgroup)
        return _Token(kind, match[kind], match.start(kind))

    def _fail(self, position: int, reason: str) -> NoReturn:
        raise ExpressionError(self.text, position, reason)

    def _take(self) -> _Token:
        token, self.token = self.token, self._next()
        return token

    def _is(self, text: str) -> bool:
        return self.token.kind in ("word", "sign") and self.token.text == text

    def expression(self) -> Expression:
        term = self._either(0)
        if self.token.kind != "end":
            self._fail(self.token.position, f"expected and, or, or the end, not {self.token.text[:40]!r}")
        return Expression(term, self.text)

    def _either(self, depth: int) -> Term:
        return self._joined("or", lambda: self._joined("and", lambda: self._one(depth)))

    def _joined(self, word: str, one: Any) -> Term:
        terms = [one()]
        while self._is(word):
            self._take()
            terms.append(one())
        return terms[0] if len(terms) == 1 else Several(tuple(terms), word == "and")

    def _one(self, depth: int) -> Term:
        if depth > DEEPEST:
            self._fail(self.token.position, f"nested deeper than {DEEPEST} levels")
        if self._is("not"):
            self._take()
            return Not(self._one(depth + 1))
        if self._is("("):
            self._take()
            term = self._either(depth + 1)
            if not self._is(")"):
                self._fail(self.token.position, "expected )")
            self._take()
            return term
        return self._test()

    def _test(self) -> Term:
        token = self._take()
        if token.kind in ("text", "number", "size", "time"):
            if not self._is("in"):
                self._fail(self.token.position, "expected in after a value; other comparisons begin with a field")
            self._take()
            name, path, field = self._field(self._take())
            return self._compare(field, name, path, "in", token)
        if token.kind != "word":
            self._fail(token.position, f"expected a field: {', '.join((*FIELDS, *FLAGS))}")
        if token.text in FLAGS:
            return Flag(token.text)
        name, path, _ = self._field(token)
        if self.token.kind != "sign" or self.token.text not in OPERATORS:
            self._fail(self.token.position, f"expected {' '.join(OPERATORS[:-1])} after {token.text[:40]}")
        operator = self._take().text
        literal = self._take()
        if operator != "!=":
            return self._compare(token, name, path, operator, literal)
        return Not(self._compare(token, name, path, "==", literal))

    def _field(self, token: _Token) -> tuple[str, tuple[str, ...], _Token]:
        name, dot, _ = token.text.partition(".")
        if token.kind != "word" or name not in FIELDS:
            about = f"{token.text[:40]!r} is not a field" if token.text else "expected a field"
            self._fail(token.position, f"{about}: {', '.join((*FIELDS, *FLAGS))}")
        path: tuple[str, ...] = ()
        if dot:
            if name not in ("key", "value", "header"):
                self._fail(token.position, f"{name} has no parts")
            path = tuple(plain or unquoted(quoted) for plain, quoted in _STEP.findall(token.text, len(name)))
        if name == "header" and path:
            path = (".".join(path),)
        return name, path, token

    def _compare(self, field: _Token, name: str, path: tuple[str, ...], operator: str, literal: _Token) -> Term:
        if name in NUMBERS:
            return self._number(name, operator, literal)
        value = self._value(literal, operator)
        if name == "header" and not path and operator not in ("in", "~"):
            self._fail(field.position, "name the header: header.trace")
        if value is None and operator != "==":
            self._fail(literal.position, "null has no order and no text; use == or !=")
        test = Comparison(operator, value)
        if operator == "~":
            try:
                test.pattern, test.bytes_pattern  # noqa: B018  (compiled while the position is known)
            except (re.error, RecursionError, OverflowError) as error:
                self._fail(literal.position, f"not a regular expression: {error}")
        return Topic(test) if name == "topic" else Content(name, path, test)

    def _value(self, token: _Token, operator: str) -> bool | int | Decimal | str | None:
        """Return the value of a literal. Times are text here: so they are in decoded values."""
        if operator in ("~", "in") and token.kind != "text":
            if operator == "~" or token.kind == "word":
                self._fail(token.position, "expected text in quotes")
            return token.text
        if token.kind == "text":
            return unquoted(token.text)
        if token.kind == "number":
            number = number_of(token.text)
            if number is None:
                self._fail(token.position, f"{token.text[:40]} is not a number; put text in quotes")
            return number
        if token.kind == "time":
            return token.text
        if token.kind == "size":
            return parse_size(token.text)
        if token.text in ("true", "false", "null"):
            return {"true": True, "false": False}.get(token.text)
        if token.kind == "word":
            self._fail(token.position, f"expected a value; put text in quotes: '{token.text[:40]}'")
        self._fail(token.position, "expected a value: text in quotes, a number, a time, true, false or null")

    def _number(self, name: str, operator: str, token: _Token) -> Term:
        if operator not in ("==", "<", "<=", ">", ">="):
            self._fail(token.position, f"{name} is a number; use == != < <= > >=")
        moment = self._time(token) if name == "time" else self._whole(name, token)
        if operator == "==":
            return Numeric(name, moment.first, moment.last)
        if operator == "<":
            return Numeric(name, None, moment.first - 1)
        if operator == "<=":
            return Numeric(name, None, moment.last if moment.is_date else moment.first)
        if operator == ">":
            return Numeric(name, (moment.last if moment.is_date else moment.first) + 1, None)
        return Numeric(name, moment.first, None)

    def _whole(self, name: str, token: _Token) -> _Moment:
        number: Any = None
        if token.kind == "size" and name == "size":
            number = parse_size(token.text)
        elif token.kind == "number":
            number = number_of(token.text)
        if type(number) is not int:
            about = "a size, such as 1MB" if name == "size" else "a whole number"
            self._fail(token.position, f"{name} is compared with {about}")
        return _Moment(number, number, False)

    def _time(self, token: _Token) -> _Moment:
        typed = unquoted(token.text) if token.kind == "text" else token.text
        try:
            if token.kind not in ("text", "time", "number"):
                raise ValueError(f"{typed[:40]!r} is not a time; use 2026-11-20T10:11:12Z, epoch ms, or -2h")
            first, last = (parse_time(typed, self.zone, end=end, now=self.now) for end in (False, True))
        except (ValueError, OverflowError) as error:
            self._fail(token.position, str(error))
        match = ISO.match(typed.strip())
        return _Moment(first, last, match is not None and match["hour"] is None)
