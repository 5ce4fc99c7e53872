"""The commands of the browser, run by their keys or as typed: each is a function of its name, which gets the main
screen and the typed argument, and raises ValueError if that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from textual.widgets import Input

from kdump.browse import background
from kdump.browse.background import BackgroundVerify, Job
from kdump.browse.browser import LAST, LETTERS, Mark, NotFound, mark_of, to_mark
from kdump.browse.command_list import (
    COLUMN,
    COMMAND,
    DIRECTION,
    FILE,
    GO,
    KEY,
    MARK,
    MOVE,
    OPTION,
    PART,
    SCOPE,
    SHOW,
    BrowseCommand,
    command,
    help_text,
    pane_keys,
    parse_command,
)
from kdump.browse.key_search import Hit, KeySearch, plan, run_search, typed_key
from kdump.browse.list_screens import findings_view, key_search_view, marks_view, sort_view, transactions_view
from kdump.browse.listings import BrowseRow, Level, SortOrder, chosen_order
from kdump.browse.main_screen import MainScreen, spot
from kdump.browse.panes import Overlay, View, text_view
from kdump.browse.save import PARTS, Exists, parse_saved, row_commands, row_json, save
from kdump.browse.scopes import SCOPES, TOPIC, Here, scope_of
from kdump.browse.time_histogram import Bin, HistogramView
from kdump.check.finding import INFO, Finding
from kdump.format.count_text import plain_count, size_text
from kdump.format.numbers import parse_long
from kdump.io.errors import SourceError
from kdump.io.run import Run
from kdump.log.selection import Selection
from kdump.questions.transactions.answer import Transaction
from kdump.render.amounts import duration_text
from kdump.render.escape import path_text, printable
from kdump.render.times import iso

MAX_COPIED = 256 * 1024
"""Size in bytes of the largest record that is copied: it is sent to the terminal, perhaps through ssh, and shown."""


def set_completions(screen: MainScreen) -> None:
    """Tell the prompt what arguments can be."""
    screen.prompt.words = {
        COLUMN: lambda: _column_names(screen),
        DIRECTION: lambda: ["asc", "desc"],
        OPTION: lambda: list(screen.typed.options),
        MARK: lambda: sorted(screen.state.marked),
        PART: lambda: list(PARTS),
        KEY: lambda: _keys_shown(screen),
        SCOPE: lambda: list(SCOPES),
    }


def run_command(screen: MainScreen, asked: BrowseCommand, argument: str = "") -> None:
    """Run a command; ask for its argument if it needs one. A wrong argument is reported in the status line."""
    if asked.needs_argument and not argument:
        screen.prompt.open(asked, screen.state.filter if asked.name == "filter" else "")
    else:
        _run(screen, asked, argument)


def _run(screen: MainScreen, asked: BrowseCommand, argument: str) -> None:
    if not screen.browser.levels and asked.name not in ("quit", "help"):
        if "look" in screen.jobs.running:
            screen.trouble(f"still opening; {asked.usage} needs something to work on")
        return
    try:
        asked.run(screen, argument)
    except ValueError as error:
        screen.trouble(str(error))


def submit(screen: MainScreen, typed: str) -> None:
    """Run what was typed into the prompt."""
    asked = screen.prompt.asked
    screen.prompt.note(typed)
    screen.close_prompt()
    if asked.name != "command":
        if typed or asked.name in ("filter", "search", "find"):
            _run(screen, asked, typed)
        return
    try:
        parsed = parse_command(typed)
    except ValueError as error:
        screen.trouble(str(error))
        return
    if parsed is not None:
        run_command(screen, *parsed)


def stop(screen: MainScreen) -> None:
    """Close the prompt, or end the newest of the jobs that run, or go up one level."""
    state, jobs = screen.state, screen.jobs
    if screen.prompt.display:
        screen.close_prompt()
    elif jobs.cancel("look"):
        screen.trouble("stopped")
    elif jobs.cancel("save"):
        screen.trouble("stopped; nothing was saved")
    elif state.last_find is not None and jobs.cancel("find"):
        state.last_find.running = False
        screen.trouble(state.last_find.summary())
    elif state.check is not None and jobs.cancel("check"):
        state.check.running, state.check.stopped, state.awaited = False, True, 0
        screen.trouble(state.check.summary())
    else:
        screen.leave()


def _show(screen: MainScreen, view: View, chosen: Callable[[Any], None] = lambda answer: None) -> None:
    """Show a screen, and call `chosen` with what is chosen from it."""
    screen.app.push_screen(Overlay(view), lambda answer: None if answer is None else chosen(answer))


# -- moving

pane_keys("↑ ↓ PgUp PgDn Home End, j k Space G", "move in the focused pane")
pane_keys("Tab, Shift+Tab", "switch to the next or previous pane: tree, table, hexdump")
pane_keys(
    "Enter, →, l",
    "open: partition, segment, batch, record, field; in the hexdump, go to the field of the selected line",
)


@command("go up one level; Esc first stops a running task", MOVE, "left backspace h", "Backspace, ←, h, Esc")
def out(screen: MainScreen, argument: str) -> None:
    screen.leave()


@command("show only the focused pane, or all panes again", MOVE, "z")
def zoom(screen: MainScreen, argument: str) -> None:
    screen.zoom()


# -- going to a place


@command(
    "type a command of this list; Tab completes names, columns and files, ↑ repeats earlier lines",
    GO,
    "colon",
    ":",
    "COMMAND",
    COMMAND,
)
def command_(screen: MainScreen, argument: str) -> None:
    submit(screen, argument)


@command(
    "go to an offset (`42`), a byte of the file (`@306`), or a time (`2026-11-21T07:58`, `-2h`): "
    "the first record that is not older",
    GO,
    "g",
    argument="WHERE",
)
def go(screen: MainScreen, typed: str) -> None:
    word = typed.removeprefix("offset").removeprefix("--offset").strip()
    number, position = parse_long(word), parse_long(typed[1:].strip()) if typed[0] == "@" else None
    if number is not None and number >= 0:
        offset(screen, word)
    elif position is not None and position >= 0:
        screen.look(f"looking for byte {typed[1:]}", lambda job: screen.browser.to_position(position, job.run))
    else:
        time(screen, typed)


@command("go to the record with this offset, or the next one", GO, argument="OFFSET")
def offset(screen: MainScreen, typed: str) -> None:
    number = parse_long(typed)
    if number is None or number < 0:
        raise ValueError(f"{typed!r} is not an offset")
    screen.look(f"looking for offset {typed}", lambda job: screen.browser.to_offset(number, job.run))


@command("go to the first record that is not older", GO, argument="TIME")
def time(screen: MainScreen, typed: str) -> None:
    first = screen.typed.time(typed)
    screen.look(f"looking for {typed}", lambda job: screen.browser.to_time(first, job.run))


@command(
    "search keys, values and headers after the current position with a regular expression, continuing through "
    "later segments; in a list of partitions or files, search its rows. Without REGEX, repeat the last search",
    GO,
    "slash",
    "/",
    "REGEX",
)
def search(screen: MainScreen, typed: str) -> None:
    typed = typed or screen.state.searched
    if typed:
        screen.state.searched = typed
        screen.look(f"searching for {typed}", lambda job: screen.browser.search(typed, job.run))


def _visit(
    screen: MainScreen, what: str, reach: Callable[[Run], list[Level]], arrived: Callable[[str], tuple[str, str]]
) -> None:
    """Go to a place without the filter, which may hide it, and show the text and style that `arrived` returns for a
    note about the filter."""
    note = " (filter switched off)" if screen.state.filter else ""
    if note:
        screen.state.filter, screen.browser.places.selection = "", Selection()
    screen.look(f"going to the {what}", lambda job: reach(job.run), lambda: screen.say(*arrived(note)))


# -- findings and transactions


def _covered(screen: MainScreen) -> str:
    """Return the path that a check covers: the current partition's directory, or else the browsed path."""
    inside = screen.browser.depth > 0 and screen.browser.directory()
    return inside or screen.browser.places.path


def _checked(screen: MainScreen, *, again: bool = False) -> BackgroundVerify:
    """Return the check that covers the current place; start one if there is none. `again`: also if it was stopped."""
    state, path = screen.state, _covered(screen)
    if state.check is not None and state.check.covers(path) and not (again and state.check.stopped):
        return state.check
    check = state.check = BackgroundVerify(path)

    def hear(finding: Finding) -> None:
        if check.add(finding) and check is state.check and state.awaited:
            _step(screen, state.awaited)

    def work(job: Job) -> None:
        def found(finding: Finding) -> None:
            screen.jobs.call_in_app(hear, finding)

        background.verify(check, replace(job.run, limits=screen.browser.places.limits, found=found))

    def done(_: None) -> None:
        check.running = False
        if state.awaited:
            _step(screen, state.awaited)
        elif not check.serious:
            screen.trouble(check.summary())

    screen.jobs.start("check", f"checking {printable(path_text(path))}", work, done)
    return check


@command("go to the next finding of kdump verify, which runs in the background", GO, "n")
def next_(screen: MainScreen, argument: str) -> None:
    _checked(screen)
    _step(screen, 1)


@command("go to the previous finding", GO, "N")
def previous(screen: MainScreen, argument: str) -> None:
    _checked(screen)
    _step(screen, -1)


def _step(screen: MainScreen, direction: int) -> None:
    check = screen.state.check
    assert check is not None
    finding = check.step(direction)
    screen.state.awaited = 0
    if finding is not None:
        _to_finding(screen, check, finding)
    elif direction > 0 and check.running:
        screen.state.awaited = direction
    elif direction > 0 and check.stopped:
        _checked(screen, again=True)
        _step(screen, direction)
    elif not check.serious:
        screen.trouble(check.summary())
    else:
        screen.trouble(f"no further finding: {check.summary()}" if direction > 0 else "no earlier finding")


def _to_finding(screen: MainScreen, check: BackgroundVerify, finding: Finding) -> None:
    serious = [n for n, other in enumerate(check.findings) if other.severity != INFO]
    number = serious.index(check.place) + 1 if check.place in serious else 0
    count = f"{number} of {len(serious)}{'…' if check.running else ''}"

    def arrived(note: str) -> tuple[str, str]:
        state, level = screen.state, screen.browser.level
        state.dumped, state.finding, state.found_at = None, finding, spot(level, level.row)
        message = f"{count}{note}: {finding.severity} {finding.code}: {finding.message}"
        return message, "bad" if finding.severity == "error" else "torn"

    _visit(
        screen, "finding", lambda run: screen.browser.reach(finding.file, position=finding.position, run=run), arrived
    )


@command("list all findings", GO, "v", alias="verify")
def findings(screen: MainScreen, argument: str) -> None:
    check = _checked(screen)

    def chosen(number: int) -> None:
        check.place = number
        _to_finding(screen, check, check.findings[number])

    _show(screen, findings_view(check), chosen)


@command("list transactions", GO, "t")
def transactions(screen: MainScreen, argument: str) -> None:
    places = screen.browser.places

    def chosen(txn: Transaction) -> None:
        message = f"{txn.state} transaction of producer {txn.producerId}/{txn.producerEpoch}"
        message += f" ({txn.transactionalId})" if txn.transactionalId else ""
        message += f", offsets {txn.firstOffset}..{txn.lastOffset}, {plain_count(txn.records, 'record')}"
        message += f", marker at {txn.markerOffset}" if txn.markerOffset is not None else ""
        _visit(
            screen,
            "transaction",
            lambda run: screen.browser.reach(txn.file, position=txn.position, run=run),
            lambda note: (message + note, ""),
        )

    _show(screen, transactions_view(_covered(screen), places.limits, places.maker.zone, screen.jobs), chosen)


# -- what reads a whole segment, partition or topic


@command(
    "search all partitions of the topic for records with exactly this key (or its bytes, `0x…`), in the "
    "background; without KEY, show what the last search has found",
    GO,
    "K",
    argument="KEY",
    completes=KEY,
)
def find(screen: MainScreen, typed: str) -> None:
    if typed:
        _find(screen, typed)
    search = screen.state.last_find
    if search is None:
        raise ValueError("type a key to search for")

    def progress() -> str:
        job = screen.jobs.running.get("find")
        if job is None or search is not screen.state.last_find:
            search.running = False
            return ""
        return f"searching …{job.percent}: "

    def chosen(hit: Hit) -> None:
        _to_mark(screen, hit.mark, f"key {search.text!r}: {hit.mark.label}")

    _show(screen, key_search_view(search, progress, screen.browser.places.maker.zone, screen.jobs), chosen)


def _find(screen: MainScreen, typed: str) -> None:
    here = Here.of(screen.browser)
    if here.directory is None and here.segment is None:
        raise ValueError("no topic is selected; select one of its partitions to search it for a key")
    search = screen.state.last_find = KeySearch(typed, typed_key(typed))

    def work(job: Job) -> None:
        try:
            scope = scope_of(here, TOPIC)
            job.total = scope.size
            run_search(search, plan(search, scope), replace(job.run, limits=screen.browser.places.limits))
        except (SourceError, OSError, NotFound) as error:
            search.note(str(error))

    def done(_: None) -> None:
        search.running = False
        screen.trouble(search.summary())
        if isinstance(screen.app.screen, Overlay):
            screen.app.screen.look()

    screen.jobs.start("find", f"searching for key {printable(typed)}", work, done)


def _keys_shown(screen: MainScreen) -> list[str]:
    """Return the keys of the records in the table, as far as they can be typed."""
    rows = screen.browser.level.rows if screen.browser.levels else []
    keys = (bytes(row.item.key or b"") for row in rows if row.type == "record" and row.item.keySize <= 64)
    texts = (key.decode("utf-8", "replace") for key in keys)
    return sorted({text for text in texts if text and text.isprintable() and " " not in text and "�" not in text})


@command(
    "show records or bytes per time bin, of the current segment or partition, or of what is named (`segment`, "
    "`partition`, `topic`, `all`); Enter goes to the first batch of a bin",
    GO,
    "H",
    argument="[SCOPE]",
    completes=SCOPE,
)
def histogram(screen: MainScreen, argument: str) -> None:
    here, places = Here.of(screen.browser), screen.browser.places
    if argument and argument not in SCOPES:
        raise ValueError(f"{argument!r} is not a scope; use {', '.join(SCOPES)}")
    zone = places.maker.zone

    def chosen(time_bin: Bin) -> None:
        label = f"first batch of {duration_text(time_bin.width)} from {iso(time_bin.start, zone)} on"
        _to_mark(screen, Mark(time_bin.path, time_bin.position, None, None, label), label)

    _show(screen, HistogramView(here, argument or here.scope, places.limits, zone, screen.jobs).view(), chosen)


# -- marks


@command("set a mark here: a letter or digit, for this session", GO, "m", "m LETTER", "[LETTER]")
def mark(screen: MainScreen, letter: str) -> None:
    if not letter:
        screen.ask_key("mark: press a letter or digit", lambda key: mark(screen, key))
        return
    here = mark_of(screen.browser)
    if letter not in LETTERS or len(letter) != 1:
        screen.trouble(f"{letter!r} is not a mark; use a letter or a digit")
    elif here is None:
        screen.trouble("there is nothing to mark here")
    else:
        screen.state.marked[letter] = here
        screen.say(f"mark {letter}: {here.label}")


@command(
    "go to a mark, in whatever segment or partition it is; `''` goes back to where the last jump began",
    GO,
    "apostrophe",
    "' LETTER",
    "[LETTER]",
    MARK,
)
def jump(screen: MainScreen, letter: str) -> None:
    marked = screen.state.marked
    letters = " ".join(sorted(marked))
    if not letter:
        question = f"go to mark: press its letter ({letters or 'none is set'})"
        screen.ask_key(question, lambda key: jump(screen, key))
    elif letter in marked:
        _to_mark(screen, marked[letter], f"mark {letter}: {marked[letter].label}")
    else:
        hint = f"set are {letters}" if letters else "press m and a letter to set one"
        screen.trouble(f"mark {letter!r} is not set; {hint}")


@command("list the marks", GO, "M")
def marks(screen: MainScreen, argument: str) -> None:
    if not screen.state.marked:
        raise ValueError("no mark is set; press m and a letter to set one")
    _show(screen, marks_view(screen.state.marked), lambda letter: jump(screen, letter))


def _to_mark(screen: MainScreen, mark: Mark, description: str) -> None:
    """Go to a place, and set the mark ' where the jump began."""
    before = mark_of(screen.browser)
    changed = ""

    def reach(run: Run) -> list[Level]:
        nonlocal changed
        levels, changed = to_mark(screen.browser, mark, run)
        return levels

    def arrived(note: str) -> tuple[str, str]:
        if before is not None:
            screen.state.marked[LAST] = before
        return (f"{description}{note}; {changed}", "torn") if changed else (f"{description}{note}", "")

    _visit(screen, "place", reach, arrived)


# -- what is shown


@command(
    "filter batches and records with the filter options of kdump inspect, typed as on the command line: "
    "`--key a --time -2h..`; empty input removes the filter",
    SHOW,
    "f",
    argument="OPTIONS",
    completes=OPTION,
)
def filter(screen: MainScreen, typed: str) -> None:
    screen.browser.places.selection = screen.typed.selection(typed)
    screen.state.filter, screen.state.dumped = typed, None
    screen.look("filtering", lambda job: screen.browser.again(job.run))


@command(
    "sort the table by a column, which a list offers: the largest number first, or the smallest text or time; "
    "`:sort COLUMN desc` and `:sort off` need no list",
    SHOW,
    "s",
    argument="[COLUMN]",
    completes=f"{COLUMN} {DIRECTION}",
)
def sort(screen: MainScreen, argument: str) -> None:
    level = screen.browser.level
    columns = level.listing.columns

    def chosen(column: str) -> None:
        """Sort by the column; by the same one again: the other way round."""
        order = level.order
        if level is not screen.browser.level:  # what was still being read when the list was opened has arrived
            screen.trouble("the table has changed; press s to sort it")
        elif order is not None and order.column == column:
            _sort(screen, order._replace(descending=not order.descending))
        else:
            _sort(screen, chosen_order(column, columns) if column else None)

    if not columns:
        raise ValueError("this list has no columns to sort by")
    if argument:
        _sort(screen, None if argument in ("off", "none") else chosen_order(argument, columns))
    else:
        _show(screen, sort_view(columns, level.order), chosen)


@command("sort the other way round", SHOW, "S")
def reverse(screen: MainScreen, argument: str) -> None:
    order = screen.browser.level.order
    if order is None:
        raise ValueError("the list is in the order of the files; press s to sort it")
    _sort(screen, order._replace(descending=not order.descending))


def _sort(screen: MainScreen, order: SortOrder | None) -> None:
    browser, depth, level = screen.browser, screen.browser.depth, screen.browser.level
    if order is None and level.order is None:
        return
    description = "sorting" if order is None else f"sorting by {order.column}: reading all rows"
    job = screen.look(description, lambda job: browser.sort(depth, order, job.run))
    job.total = (level.file.length or 0) if level.file is not None else 0


def _column_names(screen: MainScreen) -> list[str]:
    columns = screen.browser.level.listing.columns if screen.browser.levels else []
    return [*(column.name for column in columns), "off"] if columns else []


@command("show values in full (up to 64 KiB), or truncated again", SHOW, "x")
def full(screen: MainScreen, argument: str) -> None:
    screen.state.full = not screen.state.full
    screen.draw()


@command("read the files again, if a broker has written to them; the bottom line shows when it has", SHOW, "r")
def reload(screen: MainScreen, argument: str) -> None:
    screen.state.dumped = None
    screen.look("reading again", lambda job: screen.browser.again(job.run))


# -- copies of a row


@command("copy the batch, record, entry, segment or partition as JSON, and show it", SHOW, "y")
def copy(screen: MainScreen, argument: str) -> None:
    browser, app = screen.browser, screen.app
    level, row = browser.level, browser.level.row
    if row is None:
        return
    subject = level.owner if row.type == "field" and level.owner is not None else row
    if subject.type == "record" and subject.item.end - subject.item.start > MAX_COPIED:
        size = size_text(subject.item.end - subject.item.start)
        raise ValueError(f"{size} is too much to copy through the terminal; to save it, press w and type json FILE")

    def done(json_line: str | None) -> None:
        if json_line is None:
            screen.trouble("this row has no JSON")
            return
        app.copy_to_clipboard(json_line)
        _show(screen, text_view("JSON, copied if the terminal supports it (OSC 52)", json_line))

    screen.jobs.start("say", "JSON", lambda job: row_json(browser, level, row), done)


@command(
    "save the value of the record, the bytes of the field or batch, or what is named (`value`, `key`, "
    "`header:NAME`, `batch`, `bytes`, `json`) to a file; asks before it overwrites one",
    SHOW,
    "w",
    argument="[PART] FILE",
    completes=f"{PART} {FILE}",
    alias="write",
)
def save_(screen: MainScreen, argument: str) -> None:
    part, path = parse_saved(argument)
    level = screen.browser.level
    if level.row is None:
        raise ValueError("nothing is selected")
    _save(screen, level, level.row, part, path, replaces=False)


def _save(screen: MainScreen, level: Level, row: BrowseRow, part: str, path: str, *, replaces: bool) -> None:
    def work(job: Job) -> tuple[str, bool]:
        try:
            return save(screen.browser, level, row, part, path, job.run, replaces=replaces), True
        except Exists as error:
            return str(error), False

    def done(answer: tuple[str, bool]) -> None:
        message, is_saved = answer
        if is_saved or replaces:
            screen.trouble(message)
        elif not screen.is_active or isinstance(screen.focused, Input):
            screen.trouble(f"{path} exists: not saved")  # what is being typed is no answer
        else:
            screen.ask_key(f"{path} exists: overwrite it? y: yes, any other key: no", overwrite)

    def overwrite(key: str) -> None:
        if key in ("y", "Y"):
            _save(screen, level, row, part, path, replaces=True)
        else:
            screen.trouble("not saved")

    screen.jobs.start("save", "saving", work, done)


@command("show the kdump commands that print the current view", SHOW, "c")
def shell(screen: MainScreen, argument: str) -> None:
    lines = row_commands(screen.browser, screen.state.filter)
    _show(screen, text_view("commands that show the same", "\n".join(lines)))


@command("show the keys and commands", SHOW, "question_mark f1", "?, F1")
def help(screen: MainScreen, argument: str) -> None:
    _show(screen, text_view("kdump browse: keys and commands", help_text(screen.size.width), copies=False))


@command("quit", SHOW, "q ctrl+c ctrl+q", "q", alias="exit")
def quit(screen: MainScreen, argument: str) -> None:
    screen.app.exit()
