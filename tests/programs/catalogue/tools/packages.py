"""Package managers, installers and generators of projects."""

from tests.programs.catalogue.program import asks, ends, runs, scripted, shows

_INIT = tuple(
    asks(prompt, "\n")
    for prompt in (
        "package name: (one) ",
        "version: (1.0.0) ",
        "description: ",
        "entry point: (index.js) ",
        "test command: ",
        "git repository: ",
        "keywords: ",
        "author: ",
        "license: (ISC) ",
        "type: (commonjs) ",
    )
)
EVERYDAY = (
    runs(
        "apt-get install",
        "apt-get install --no-download -o Debug::NoLocking=1 nothing-of-this-name",
        ends(100),
    ),
    runs("apt-get purge", "apt-get purge -s tmux", ends(), whom="root"),
    runs("apt list", "apt list tmux", ends()),
    runs("npm init with yes", "npm init -y", ends(), env={"NO_UPDATE_NOTIFIER": "1"}),
    runs("python -m venv", "/usr/bin/python3 -m venv --without-pip v", ends()),
    runs(
        "python's site at work",
        "/usr/bin/python3 -m compileall -q /usr/lib/python3.11/json",
        ends(None),
    ),
)
ALL = (
    runs("pnpm without arguments", "{node}/pnpm", ends(None)),
    runs(
        "npm init in a folder of its own",
        "npm init",
        *_INIT,
        asks("Is this OK? (yes) ", "yes\n"),
        ends(),
        first="mkdir one && cd one",
        env={"NO_UPDATE_NOTIFIER": "1"},
    ),
    runs(
        "npm login",
        "npm login --auth-type=legacy --registry=http://127.0.0.1:1",
        asks("Username: ", "a\n"),
        asks("Password: ", "b\n", "secret"),
        ends(None),
        env={"NO_UPDATE_NOTIFIER": "1", "npm_config_fetch_retries": "0"},
    ),
    runs(
        "create-vite",
        "{node}/create-vite",
        shows("Project name", "\r", "line|screen|key"),
        shows("Select a framework", "\x03", "key|screen"),
        ends(None),
    ),
    runs(
        "create-tauri-app",
        "{node}/create-tauri-app",
        shows("Project name", "\r", "line"),
        shows("Identifier", "\r", "line"),
        shows("Choose which language", "\x03", "key|screen|line"),
        ends(None),
    ),
    runs(
        "poetry init",
        "{python}/poetry init",
        asks("]:  ", "one\n"),
        asks("[0.1.0]:  ", "\n"),
        asks("Description []: ", "\n"),
        shows("Author.*: ", "n\n", "line"),
        asks("License []:  ", "\n"),
        shows("Compatible Python.*: ", "\n", "line"),
        shows("main dependencies.*\\[.*\\]", "no\n", "line"),
        shows("development dep.*\\[.*\\]", "no\n", "line"),
        shows("onfirm generation.*\\[.*\\]", "no\n", "line"),
        ends(1),
    ),
    runs(
        "cookiecutter",
        "{python}/cookiecutter template",
        asks("project (one): ", "\n"),
        shows("Select license", "1\n", "line"),
        ends(),
        files={
            "template/cookiecutter.json": '{"project": "one", "license": ["MIT", "BSD"]}',
            "template/{{cookiecutter.project}}/x": "x\n",
        },
    ),
    runs(
        "maturin new",
        "{python}/maturin new one",
        shows("binding", "\r", "key|screen|line"),
        ends(None),
    ),
    runs(
        "pip uninstall of a folder",
        "v/bin/pip uninstall pip",
        asks("Proceed (Y/n)? ", "n\n"),
        ends(None),
        first="/usr/bin/python3 -m venv v",
        needs="python3",
    ),
    runs("gem at work", "gem list -l", ends(), needs="gem"),
    scripted(
        "dpkg-deb at work",
        (
            "mkdir -p t/DEBIAN; printf 'Package: a\\nVersion: 1\\nArchitecture: "
            "all\\nMaintainer: a\\nDescription: a\\n' > t/DEBIAN/control; head -c 3M "
            "/dev/urandom > t/f; printf 'Build? '; dpkg-deb -b t a.deb"
        ),
        ends(),
        needs="dpkg-deb",
    ),
)
