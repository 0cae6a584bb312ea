"""Libraries of node that ask in a terminal."""

from tests.programs.catalogue.program import asks, ends, runs, shows

_NODE = "node app.mjs"


def js(code: str) -> dict[str, str]:
    return {"app.mjs": code}


_CLACK = "import * as p from '{modules}/@clack/prompts/dist/index.mjs'\n"
_INQUIRER = "import * as p from '{modules}/@inquirer/prompts/dist/index.js'\n"
ALL = (
    runs(
        "@inquirer input",
        _NODE,
        shows("Name", "ada\r", "line"),
        ends(),
        files=js(_INQUIRER + "await p.input({message: 'Name'})\n"),
    ),
    runs(
        "@inquirer confirm",
        _NODE,
        shows("Sure.*Y/n", "y\r", "line|key"),
        ends(),
        files=js(_INQUIRER + "await p.confirm({message: 'Sure?'})\n"),
    ),
    runs(
        "@inquirer select",
        _NODE,
        shows("two", "\r", "screen|key"),
        ends(),
        files=js(
            _INQUIRER
            + "await p.select({message: 'Which?', choices: [{value: 'one'}, {value: 'two'}]})\n"
        ),
    ),
    runs(
        "@inquirer password",
        _NODE,
        shows("Password", "x\r", "secret"),
        ends(),
        files=js(_INQUIRER + "await p.password({message: 'Password', mask: '*'})\n"),
    ),
    runs(
        "@inquirer checkbox",
        _NODE,
        shows("two", " \r", "screen|key"),
        ends(),
        files=js(
            _INQUIRER
            + "await p.checkbox({message: 'Which?', choices: [{value: 'one'}, {value: 'two'}]})\n"
        ),
    ),
    runs(
        "@inquirer editor",
        _NODE,
        shows("Press.*enter|enter", "\r", "line|key"),
        shows("~", ":q!\r", "screen"),
        ends(None),
        env={"EDITOR": "vim -u NONE", "VISUAL": "vim -u NONE"},
        files=js(_INQUIRER + "await p.editor({message: 'Text'})\n"),
        needs="node vim",
    ),
    runs(
        "enquirer input",
        "node app.mjs",
        shows("Name", "ada\r", "line"),
        ends(),
        files=js(
            "import e from '{modules}/enquirer/index.js'\n"
            "await new e.Input({message: 'Name'}).run()\n"
        ),
    ),
    runs(
        "enquirer select",
        "node app.mjs",
        shows("two", "\r", "screen|key"),
        ends(),
        files=js(
            "import e from '{modules}/enquirer/index.js'\n"
            "await new e.Select({message: 'Which', choices: ['one', 'two']}).run()\n"
        ),
    ),
    runs(
        "enquirer password",
        "node app.mjs",
        shows("Password", "x\r", "secret"),
        ends(),
        files=js(
            "import e from '{modules}/enquirer/index.js'\n"
            "await new e.Password({message: 'Password'}).run()\n"
        ),
    ),
    runs(
        "prompts text",
        "node app.mjs",
        shows("Name", "ada\r", "line"),
        ends(),
        files=js(
            "import p from '{modules}/prompts/index.js'\n"
            "await p({type: 'text', name: 'n', message: 'Name'})\n"
        ),
    ),
    runs(
        "prompts confirm",
        "node app.mjs",
        shows("Sure.*y/N", "y", "line|key"),
        ends(),
        files=js(
            "import p from '{modules}/prompts/index.js'\n"
            "await p({type: 'confirm', name: 'n', message: 'Sure?'})\n"
        ),
    ),
    runs(
        "prompts select",
        "node app.mjs",
        shows("two", "\r", "screen|key"),
        ends(),
        files=js(
            "import p from '{modules}/prompts/index.js'\n"
            "await p({type: 'select', name: 'n', message: 'Which', choices: ['one', "
            "'two']})\n"
        ),
    ),
    runs(
        "prompts number",
        "node app.mjs",
        shows("Age", "4\r", "line"),
        ends(),
        files=js(
            "import p from '{modules}/prompts/index.js'\n"
            "await p({type: 'number', name: 'n', message: 'Age'})\n"
        ),
    ),
    runs(
        "clack text",
        "node app.mjs",
        shows("Name", "ada\r", "line|screen"),
        ends(),
        files=js(_CLACK + "await p.text({message: 'Name'})\n"),
    ),
    runs(
        "clack select",
        "node app.mjs",
        shows("two", "\r", "screen|key"),
        ends(),
        files=js(
            _CLACK
            + "await p.select({message: 'Which', options: [{value: 'one'}, {value: 'two'}]})\n"
        ),
    ),
    runs(
        "clack confirm",
        "node app.mjs",
        shows("No", "y", "screen|key"),
        ends(),
        files=js(_CLACK + "await p.confirm({message: 'Sure?'})\n"),
    ),
    runs(
        "clack password",
        "node app.mjs",
        shows("Password", "x\r", "secret|screen"),
        ends(),
        files=js(_CLACK + "await p.password({message: 'Password'})\n"),
    ),
    runs(
        "clack at work",
        "node app.mjs",
        ends(),
        files=js(
            _CLACK
            + (
                "const s = p.spinner()\ns.start('Name?')\nawait new Promise(r => "
                "setTimeout(r, 1500))\ns.stop('done')\n"
            )
        ),
    ),
    runs(
        "readline-sync",
        "node app.cjs",
        asks("Name: ", "ada\n"),
        ends(),
        files={"app.cjs": "require('{modules}/readline-sync').question('Name: ')\n"},
    ),
    runs(
        "readline-sync password",
        "node app.cjs",
        asks("Password: ", "x\n", "secret"),
        ends(),
        files={
            "app.cjs": (
                "require('{modules}/readline-sync').question('Password: ', {hideEchoBack: true})\n"
            )
        },
    ),
    runs(
        "readline-sync keyIn",
        "node app.cjs",
        asks("Sure? [y/n]: ", "y", "key|line"),
        ends(),
        files={"app.cjs": "require('{modules}/readline-sync').keyInYN('Sure?')\n"},
    ),
    runs(
        "prompt-sync",
        "node app.cjs",
        asks("Name: ", "ada\r"),
        ends(),
        files={"app.cjs": "require('{modules}/prompt-sync')()('Name: ')\n"},
    ),
    runs(
        "deno-like raw mode in node",
        "node ask",
        asks("Press any key", "x", "key"),
        ends(),
        files={
            "ask": (
                "process.stdout.write('Press any key')\nprocess.stdin.setRawMode(true)\n"
                "process.stdin.once('data', () => setTimeout(() => process.exit(0), 300))\n"
            )
        },
    ),
)
EVERYDAY = ()
