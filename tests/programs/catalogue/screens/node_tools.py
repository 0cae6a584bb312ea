"""Tools of node that ask or work: scaffolds, consoles, watchers and bars."""

from tests.programs.catalogue.program import Program, Step, asks, ends, runs, shows, works

N = "{node}/"


def _m(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "node app.mjs", *steps, files={"app.mjs": code})


def _c(name: str, code: str, *steps: Step) -> Program:
    return runs(name, "node app.cjs", *steps, files={"app.cjs": code})


EVERYDAY: tuple[Program, ...] = ()
ALL = (
    runs(
        "coffee",
        N + "coffee",
        asks("coffee> ", "t = Date.now(); 1 while Date.now() - t < 500\n"),
        asks("coffee> ", ".exit\n"),
        ends(None),
        needs="{node}/coffee",
    ),
    runs("lsc", N + "lsc", asks("ls> ", "\x04"), ends(None), needs="{node}/lsc"),
    runs(
        "nodemon",
        N + "nodemon a.js",
        works("starting", 1.5),
        needs="{node}/nodemon",
        files={"a.js": "setInterval(() => {}, 1000)\n"},
    ),
    runs(
        "nodemon of a question",
        N + "nodemon -q a.js",
        shows("Name: ", "a\n", "line"),
        needs="{node}/nodemon",
        files={
            "a.js": (
                "const r = require('readline').createInterface({input: process.stdin, output: "
                "process.stdout}); r.question('Name: ', () => process.exit(0))\n"
            )
        },
    ),
    runs(
        "yarn init",
        N + "yarn init",
        shows("question.*name.*: ", "\n", "line"),
        shows("question.*version.*: ", "\n", "line"),
        shows("question.*description.*: ", "\x03", "line"),
        ends(None),
        needs="{node}/yarn",
    ),
    runs(
        "plop",
        N + "plop",
        shows("name", "a\r", "line"),
        ends(None),
        needs="{node}/plop",
        files={
            "plopfile.js": (
                "export default p => p.setGenerator('x', {description: 'x', prompts: [{type: "
                "'input', name: 'n', message: 'name?'}], actions: []})\n"
            ),
            "package.json": '{"type": "module"}',
        },
    ),
    runs(
        "hygen asks",
        N + "hygen x new",
        shows("name", "a\r", "line"),
        ends(None),
        needs="{node}/hygen",
        files={
            "_templates/x/new/prompt.js": (
                "module.exports = [{type: 'input', name: 'n', message: 'name?'}]\n"
            ),
            "_templates/x/new/a.ejs.t": "---\nto: a\n---\nx\n",
        },
    ),
    runs(
        "create-vue",
        N + "create-vue",
        shows("Project name", "demo\r", "line|screen"),
        shows("Select features|TypeScript", "\x03", "key|screen|line"),
        needs="{node}/create-vue",
    ),
    _c(
        "vorpal",
        (
            "const v = require('{modules}/vorpal')()\nv.command('w').action(() => new "
            "Promise(f => setTimeout(f, 900)))\nv.delimiter('app$').show()\n"
        ),
        shows("app\\$ ", "w\n", "line|shell"),
        shows("app\\$ ", "exit\n", "line|shell"),
        ends(None),
    ),
    _c(
        "prompt of node",
        (
            "const p = require('{modules}/prompt'); p.start(); p.get(['name', {name: "
            "'word', hidden: true}], () => process.exit(0))\n"
        ),
        shows("name.*: ", "a\n", "line"),
        shows("word.*: ", "b\n", "line|secret"),
        ends(None),
    ),
    _c(
        "promptly",
        (
            "const p = require('{modules}/promptly'); (async () => { await p.prompt('Name: "
            "'); await p.confirm('Sure? '); await p.password('Password: '); "
            "process.exit(0) })()\n"
        ),
        asks("Name: ", "a\n"),
        asks("Sure? ", "y\n"),
        shows("Password: ", "x\n", "secret"),
        ends(None),
    ),
    _c(
        "cli-select",
        ("require('{modules}/cli-select')({values: ['one', 'two']}).then(() => process.exit(0))\n"),
        shows("two", "\r", "key|screen|line"),
        ends(None),
    ),
    _m(
        "listr2 at work",
        (
            "import {Listr} from '{modules}/listr2/dist/index.js'\n"
            "await new Listr([{title: 'Install? ', task: () => new Promise(f => "
            "setTimeout(f, 2500))}]).run()\n"
        ),
        works("Install", 2.0),
        ends(None),
    ),
    _m(
        "ora at work",
        (
            "import ora from '{modules}/ora/index.js'\n"
            "const s = ora('Password: ').start(); setTimeout(() => s.stop(), 2500)\n"
        ),
        works("Password", 2.0),
        ends(None),
    ),
    _c(
        "cli-progress at work",
        (
            "const c = require('{modules}/cli-progress'); const b = new c.SingleBar({}, "
            "c.Presets.shades_classic); b.start(25, 0); let n = 0; const t = "
            "setInterval(() => { b.update(++n); if (n === 25) { clearInterval(t); b.stop() "
            "} }, 100)\n"
        ),
        works("25", 1.8),
        ends(None),
    ),
    _m(
        "clack of the newest release",
        (
            "import * as p from '{modules}/@clack/prompts/dist/index.mjs'\n"
            "await p.text({message: 'Name'}); await p.confirm({message: 'Sure?'}); await "
            "p.select({message: 'Which', options: [{value: 'one'}, {value: 'two'}]}); "
            "await p.password({message: 'Password'})\n"
        ),
        shows("Name", "a\r", "line|screen"),
        shows("Sure", "y", "key|screen|line"),
        shows("two", "\r", "key|screen"),
        shows("Password", "x\r", "secret|screen"),
        ends(None),
    ),
    _m(
        "clack's tasks at work",
        (
            "import * as p from '{modules}/@clack/prompts/dist/index.mjs'\n"
            "await p.tasks([{title: 'Really? ', task: async () => { await new Promise(f => "
            "setTimeout(f, 2500)); return 'done' }}])\n"
        ),
        works("Really", 1.8),
        ends(None),
    ),
)
