"""Python libraries that ask in a terminal."""

from tests.programs.catalogue.program import asks, ends, runs, shows

_PY = "{python}/python app"


def py(code: str) -> dict[str, str]:
    return {"app": code}


ALL = (
    runs(
        "click.prompt",
        _PY,
        asks("Name [ada]: ", "\n"),
        asks("Password: ", "x\n", "secret"),
        asks("Repeat for confirmation: ", "x\n", "secret"),
        asks("Sure? [y/N]: ", "y\n"),
        ends(),
        files=py(
            "import click, time\nclick.prompt('Name', default='ada')\n"
            "time.sleep(.3)\nclick.prompt('Password', hide_input=True, "
            "confirmation_prompt=True)\nclick.confirm('Sure?')\n"
        ),
    ),
    runs(
        "click.pause",
        _PY,
        asks("Press any key to continue...", "x", "key"),
        ends(),
        files=py("import click\nclick.pause()\n"),
    ),
    runs(
        "typer",
        _PY,
        asks("Name: ", "a\n"),
        asks("Delete? [y/N]: ", "n\n"),
        ends(1),
        files=py(
            "import typer\ndef main(name: str = typer.Option(..., prompt=True)):\n"
            "  typer.confirm('Delete?', abort=True)\ntyper.run(main)\n"
        ),
    ),
    runs(
        "rich.prompt",
        _PY,
        asks("Name (ada): ", "\n"),
        asks("Sure? [y/n]: ", "y\n"),
        asks("Password: ", "x\n", "secret"),
        ends(),
        files=py(
            "from rich.prompt import Prompt, Confirm\nPrompt.ask('Name', "
            "default='ada')\nConfirm.ask('Sure?')\nPrompt.ask('Password', "
            "password=True)\n"
        ),
    ),
    runs(
        "prompt_toolkit",
        _PY,
        shows("Name>", "ada\r", "line"),
        shows(r"\n.*Again>", "b\r", "line"),
        ends(),
        files=py(
            "from prompt_toolkit import prompt\nimport time\n"
            "prompt('Name> ')\ntime.sleep(.3)\nprompt('Again> ')\n"
        ),
    ),
    runs(
        "prompt_toolkit with a password",
        _PY,
        shows("Password:", "ada\r", "secret"),
        ends(),
        files=py("from prompt_toolkit import prompt\nprompt('Password: ', is_password=True)\n"),
    ),
    runs(
        "prompt_toolkit's dialog",
        _PY,
        shows("Yes.*No", "\r", "screen"),
        ends(),
        files=py(
            "from prompt_toolkit.shortcuts import yes_no_dialog\n"
            "yes_no_dialog(title='T', text='Sure?').run()\n"
        ),
    ),
    runs(
        "questionary text",
        _PY,
        shows(r"Name\?", "ada\r", "line"),
        shows(r"Sure\?.*\(Y/n\)", "y", "line|key"),
        ends(),
        files=py(
            "import questionary\nquestionary.text('Name?').ask()\n"
            "questionary.confirm('Sure?').ask()\n"
        ),
    ),
    runs(
        "questionary select",
        _PY,
        shows("two", "\r", "screen|key|line"),
        ends(),
        files=py(
            "import questionary\nquestionary.select('Which?', choices=['one', 'two']).ask()\n"
        ),
    ),
    runs(
        "questionary password",
        _PY,
        shows("Password", "x\r", "secret"),
        ends(),
        files=py("import questionary\nquestionary.password('Password').ask()\n"),
    ),
    runs(
        "questionary checkbox",
        _PY,
        shows("two", " \r", "screen|key|line"),
        ends(),
        files=py(
            "import questionary\nquestionary.checkbox('Which?', choices=['one', 'two']).ask()\n"
        ),
    ),
    runs(
        "inquirer of python, text",
        _PY,
        shows("Name", "ada\r", "line"),
        ends(),
        files=py("import inquirer\ninquirer.prompt([inquirer.Text('n', message='Name')])\n"),
    ),
    runs(
        "inquirer of python, list",
        _PY,
        shows("two", "\r", "screen|key"),
        ends(),
        files=py(
            "import inquirer\ninquirer.prompt([inquirer.List('n', message='Which', "
            "choices=['one', 'two'])])\n"
        ),
    ),
    runs(
        "inquirer of python, confirm",
        _PY,
        shows("Sure.*y/N", "y\r", "line|key"),
        ends(),
        files=py("import inquirer\ninquirer.prompt([inquirer.Confirm('n', message='Sure')])\n"),
    ),
    runs(
        "inquirer of python, password",
        _PY,
        shows("Password", "x\r", "secret"),
        ends(),
        files=py(
            "import inquirer\ninquirer.prompt([inquirer.Password('n', message='Password')])\n"
        ),
    ),
    runs(
        "InquirerPy select",
        _PY,
        shows("two", "\r", "screen|key|line"),
        ends(),
        files=py(
            "from InquirerPy import inquirer\ninquirer.select(message='Which?', "
            "choices=['one', 'two']).execute()\n"
        ),
    ),
    runs(
        "InquirerPy secret",
        _PY,
        shows("Password", "x\r", "secret"),
        ends(),
        files=py(
            "from InquirerPy import inquirer\ninquirer.secret(message='Password:').execute()\n"
        ),
    ),
    runs(
        "InquirerPy fuzzy",
        _PY,
        shows("two", "\r", "screen|line|key"),
        ends(),
        files=py(
            "from InquirerPy import inquirer\ninquirer.fuzzy(message='Which?', "
            "choices=['one', 'two']).execute()\n"
        ),
    ),
    runs(
        "beaupy select",
        _PY,
        shows("two", "\r", "screen|key"),
        ends(),
        files=py("import beaupy\nbeaupy.select(['one', 'two'])\n"),
    ),
    runs(
        "beaupy confirm",
        _PY,
        shows("No", "y\r", "screen|key|line"),
        ends(None),
        files=py("import beaupy\nbeaupy.confirm('Sure?')\n"),
    ),
    runs(
        "bullet",
        _PY,
        shows("two", "\r", "screen|key"),
        ends(),
        files=py("from bullet import Bullet\nBullet('Which?', choices=['one', 'two']).launch()\n"),
    ),
    runs(
        "bullet password",
        _PY,
        asks("Password: ", "x\r", "secret"),
        ends(),
        files=py("from bullet import Password\nPassword('Password: ').launch()\n"),
    ),
)
EVERYDAY = ()
