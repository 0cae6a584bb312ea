"""Dialogs and selectors that draw on the terminal."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows, works

EVERYDAY = (
    runs("dialog --yesno", "dialog --yesno Sure 7 30", shows("Sure", "\r", "screen"), ends()),
    runs(
        "dialog --inputbox", "dialog --inputbox Name 8 30", shows("Name", "ada\r", "screen"), ends()
    ),
    runs(
        "dialog --passwordbox",
        "dialog --passwordbox Password 8 30",
        shows("Password.*j", "x\r", "screen|secret"),
        ends(),
    ),
    runs(
        "dialog --menu",
        "dialog --menu Which 12 30 3 a One b Two",
        shows("Two", "b", "screen"),
        shows("", "\r", "screen"),
        ends(),
    ),
    runs(
        "dialog --checklist",
        "dialog --checklist Which 12 30 3 a One off b Two on",
        shows("Cancel", " ", "screen"),
        shows("", "\r", "screen"),
        ends(),
    ),
    runs("dialog --msgbox", "dialog --msgbox Done 7 30", shows("Done", "\r", "screen"), ends()),
    scripted(
        "dialog --gauge",
        "for i in 10 40 70 100; do echo $i; sleep 0.3; done | dialog --gauge Copying 7 30",
        ends(),
        needs="dialog",
    ),
    runs("whiptail --yesno", "whiptail --yesno Sure 8 30", shows("No", "\r", "screen"), ends()),
    runs(
        "whiptail --inputbox",
        "whiptail --inputbox Name 8 30",
        shows("Cancel", "ada\r", "screen"),
        ends(),
    ),
    runs(
        "whiptail --passwordbox",
        "whiptail --passwordbox Password 8 30",
        shows("Cancel", "x\r", "screen|secret"),
        ends(),
    ),
    runs(
        "whiptail --menu",
        "whiptail --menu Which 12 30 3 a One b Two",
        shows("Cancel", "\r", "screen"),
        ends(),
    ),
    scripted(
        "whiptail --gauge",
        "for i in 10 40 70 100; do echo $i; sleep 0.3; done | whiptail --gauge Copying 7 30 0",
        ends(),
        needs="whiptail",
    ),
    runs(
        "curses of python",
        "/usr/bin/python3 app",
        shows("Press", "x", "screen"),
        ends(),
        files={
            "app": (
                "import curses\ndef main(s):\n  s.addstr(3, 3, 'Press'); s.refresh(); "
                "s.getch()\n  curses.napms(300)\ncurses.wrapper(main)\n"
            )
        },
    ),
    runs(
        "a menu drawn with escapes",
        "bash menu",
        shows("> two", "j", "screen|key"),
        shows("", "q", "screen|key"),
        ends(),
        files={
            "menu": (
                "while :; do printf '\\e[2J\\e[3;3HPick one\\e[4;3H  one\\e[5;3H> two'; "
                "read -rsn1 k; [ $k = q ] && break; done\n"
            )
        },
    ),
)
ALL = (
    runs(
        "fzf",
        "bash -c 'seq 9 | fzf'",
        shows("9/9", "7", "screen"),
        shows("1/9", "\r", "screen"),
        ends(),
        needs="fzf",
    ),
    runs(
        "fzf --height",
        "bash -c 'seq 9 | fzf --height 6'",
        shows("9/9", "7", "screen|line"),
        shows("1/9", "\r", "screen|line"),
        ends(),
        needs="fzf",
    ),
    runs("fzy", "bash -c 'seq 9 | fzy'", shows("> .*2", "3\r", "screen|line"), ends(), needs="fzy"),
    runs(
        "smenu",
        "bash -c 'echo a b c | smenu'",
        shows("c", "q", "screen|key"),
        ends(None),
        needs="smenu",
    ),
    runs(
        "percol",
        "bash -c 'seq 9 | percol'",
        shows("QUERY", "\r", "screen"),
        ends(None),
        needs="percol",
    ),
    runs(
        "python's dialog",
        "{python}/python app",
        shows("Sure", "\r", "screen"),
        ends(None),
        needs="dialog",
        files={"app": "import dialog\ndialog.Dialog().yesno('Sure?')\n"},
    ),
    runs(
        "npyscreen",
        "{python}/python app",
        shows("OK", None, "screen"),
        files={
            "app": (
                "import npyscreen\ndef f(*a):\n  F = npyscreen.Form(name='Form'); "
                "F.add(npyscreen.TitleText, name='Name:'); F.edit()\n"
                "npyscreen.wrapper_basic(f)\n"
            )
        },
    ),
    runs(
        "urwid",
        "{python}/python app",
        shows("Name", "q", "screen"),
        shows("q", None, "screen"),
        files={"app": "import urwid\nurwid.MainLoop(urwid.Filler(urwid.Edit('Name: '))).run()\n"},
    ),
    runs(
        "asciimatics",
        "{python}/python app",
        shows("Press", "q", "screen"),
        ends(),
        files={
            "app": (
                "from asciimatics.screen import Screen\ndef d(s):\n"
                "  s.print_at('Press', 3, 3); s.refresh()\n  while True:\n"
                "    s.wait_for_input(60)\n    if s.get_event(): return\n"
                "Screen.wrapper(d)\n"
            )
        },
    ),
    runs(
        "textual",
        "{python}/python app",
        shows("Hello", "q", "screen"),
        ends(),
        files={
            "app": (
                "from textual.app import App\nfrom textual.widgets import Input, Label\n"
                "class A(App):\n  BINDINGS = [('q', 'quit', 'Quit')]\n"
                "  def compose(self): yield Label('Hello')\nA().run()\n"
            )
        },
    ),
    runs(
        "textual with an input",
        "{python}/python app",
        shows("Name", "ada\r", "screen"),
        ends(),
        files={
            "app": (
                "from textual.app import App\nfrom textual.widgets import Input\n"
                "class A(App):\n  def compose(self): yield Input(placeholder='Name')\n"
                "  def on_input_submitted(self): self.exit()\n"
                "A().run()\n"
            )
        },
    ),
    runs(
        "textual that works",
        "{python}/python app",
        works("Working", 0.6),
        files={
            "app": (
                "import asyncio\nfrom textual.app import App\n"
                "from textual.widgets import Label\nclass A(App):\n"
                "  def compose(self): yield Label('Working')\n"
                "  async def on_mount(self):\n    self.run_worker(self.go())\n"
                "  async def go(self):\n    for n in range(40):\n"
                "      await asyncio.sleep(0.05); self.query_one(Label).update(f'Working "
                "{n}')\n    self.exit()\nA().run()\n"
            )
        },
    ),
    runs(
        "pick",
        "{python}/python app",
        shows("two", "\r", "screen"),
        ends(),
        files={"app": "import pick\npick.pick(['one', 'two'], 'Which?')\n"},
    ),
    runs(
        "simple-term-menu",
        "{python}/python app",
        shows("two", "\r", "screen|key"),
        ends(),
        files={
            "app": (
                "from simple_term_menu import TerminalMenu\nTerminalMenu(['one', 'two'], "
                "title='Which?').show()\n"
            )
        },
    ),
    runs(
        "blessed of node",
        "node app",
        shows("Hello", "q", "screen"),
        ends(),
        files={
            "app": (
                "const b = require('{modules}/blessed')\nconst s = b.screen()\n"
                "b.box({parent: s, content: 'Hello'})\ns.key('q', () => process.exit(0))\n"
                "s.render()\n"
            )
        },
    ),
    runs(
        "terminal-kit",
        "node app",
        shows("two", "\r", "screen|key"),
        ends(),
        files={
            "app": (
                "const t = require('{modules}/terminal-kit').terminal\n"
                "t.singleColumnMenu(['one', 'two'], () => process.exit(0))\n"
            )
        },
    ),
    runs(
        "ink with a selector",
        "node app.mjs",
        shows("two", "\r", "screen|key|line"),
        ends(),
        files={
            "app.mjs": (
                "import React from '{modules}/react/index.js'\n"
                "import {render, useApp} from '{modules}/ink/build/index.js'\n"
                "import S from '{modules}/ink-select-input/build/index.js'\n"
                "const h = React.createElement\nfunction A() { const {exit} = useApp(); "
                "return h(S.default ?? S, {items: [{label: 'one', value: 1}, {label: "
                "'two', value: 2}], onSelect: () => exit()}) }\n"
                "render(h(A))\n"
            )
        },
    ),
    runs(
        "fdisk",
        "fdisk disk",
        asks("Command (m for help): ", "n\n"),
        asks("Select (default p): ", "p\n"),
        asks("Partition number (1-4, default 1): ", "\n"),
        shows(r"First sector .*: $", "\n", "line"),
        shows(r"Last sector.*: $", "\n", "line"),
        asks("Command (m for help): ", "q\n"),
        ends(),
        first="truncate -s 32M disk",
        needs="fdisk",
    ),
    runs(
        "cfdisk",
        "cfdisk disk",
        shows("gpt.*dos", "q", "screen"),
        ends(None),
        first="truncate -s 32M disk",
        needs="cfdisk",
    ),
    runs(
        "gdisk",
        "gdisk disk",
        asks("Command (? for help): ", "n\n"),
        asks("Partition number (1-128, default 1): ", "\n"),
        shows("First sector.*: ", "\n", "line"),
        shows("Last sector.*: ", "\n", "line"),
        shows("Hex code.*: ", "\n", "line"),
        asks("Command (? for help): ", "q\n"),
        ends(),
        first="truncate -s 32M disk",
        needs="gdisk",
    ),
    runs(
        "parted",
        "parted disk",
        asks("(parted) ", "mklabel gpt\n"),
        asks("(parted) ", "rm 1\n"),
        asks("(parted) ", "quit\n"),
        ends(None),
        first="truncate -s 32M disk",
        needs="parted",
    ),
)
