"""A setting is read typed from its declaration; everything wrong is reported in one error."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from agent.conf import Conf as AgentConf
from projects.conf import Conf
from projects.conf.setting import (
    Choice,
    Directory,
    Environment,
    Flag,
    Items,
    Level,
    Number,
    Origin,
    Seconds,
    Setting,
    Text,
)

_LISTS = [
    one for owner in (Conf, AgentConf) for one in vars(owner).values() if isinstance(one, Items)
]


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (Text("V", "", ""), " a b ", "a b"),
        (Items("V", (), ""), "1, 2,,3", ("1", "2", "3")),
        (Number("V", 0, ""), "12", 12),
        (Seconds("V", 1.0, ""), "0.25", 0.25),
        (Flag("V", False, ""), "Yes", True),
        (Flag("V", True, ""), "off", False),
        (Directory("V", Path(), ""), "/data", Path("/data")),
        (Origin("V", "", ""), "https://tools.example/", "https://tools.example"),
        (Choice("V", "a", "", choices=("a", "b")), "b", "b"),
        (Level("V", "INFO", ""), "warning", "WARNING"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_variable_becomes_a_typed_value(
    setting: Setting[object], text: str, value: object
) -> None:
    environment = Environment({"V": text})
    assert environment.read(setting) == value
    environment.finish()


def test_an_unset_or_empty_variable_means_the_default() -> None:
    environment = Environment({"EMPTY": "  "})
    assert environment.read(Text("EMPTY", "x", "")) == "x"
    assert environment.read(Number("UNSET", 7, "", at_least=100)) == 7
    environment.finish()


def test_one_error_names_every_problem_and_no_value() -> None:
    environment = Environment(
        {"N": "s3cret", "S": "nan", "M": "-1", "F": "maybe", "C": "x", "O": "tools.example"}
    )
    environment.read(Number("N", 1, ""))
    environment.read(Seconds("S", 1.0, ""))
    environment.read(Number("M", 1, ""))
    environment.read(Flag("F", False, ""))
    environment.read(Choice("C", "a", "", choices=("a", "b", "c")))
    environment.read(Origin("O", "", ""))
    environment.problem("DATABASE_URL must be something")
    with pytest.raises(ImproperlyConfigured) as error:
        environment.finish()
    assert str(error.value).removeprefix("the environment is not usable: ").split("; ") == [
        "N must be a whole number",
        "S must be at least 0",
        "M must be at least 0",
        "F must be true or false",
        "C must be a, b or c",
        "O must be an origin such as https://holdline.example.com",
        "DATABASE_URL must be something",
    ]


@pytest.mark.parametrize("setting", _LISTS, ids=lambda setting: setting.variable)
def test_each_list_of_nothing_but_commas_is_refused(setting: Items) -> None:
    environment = Environment({setting.variable: " ,, "})
    environment.read(setting)
    with pytest.raises(ImproperlyConfigured, match=f"{setting.variable} must be at least one item"):
        environment.finish()


@pytest.mark.parametrize("setting", _LISTS, ids=lambda setting: setting.variable)
def test_each_list_that_is_written_empty_is_the_default(setting: Items) -> None:
    environment = Environment({setting.variable: ""})
    assert environment.read(setting) == setting.default
    environment.finish()


@pytest.mark.parametrize(
    ("setting", "text", "said"),
    [
        (Level("V", "INFO", ""), "LOUD", "V must be DEBUG, INFO"),
        (Directory("V", Path(), ""), "~no-such-user/data", "V must be a path"),
    ],
)
def test_what_names_nothing_is_refused(setting: Setting[object], text: str, said: str) -> None:
    environment = Environment({"V": text})
    environment.read(setting)
    with pytest.raises(ImproperlyConfigured, match=said):
        environment.finish()


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("ALLOWED_COMMANDS", "git log"),
        ("ALLOWED_COMMANDS", "./git"),
        ("ALLOWED_COMMANDS", "sleep,*"),
        ("ALLOWED_COMMANDS", "/opt/../bin/git"),
        ("ALLOWED_COMMANDS", "git:all"),
        ("ALLOWED_COMMANDS", "git,:shell,ls"),
        ("ALLOWED_COMMANDS", '["git"] x'),
        ("ALLOWED_DIRECTORIES", "work/here"),
        ("ALLOWED_DIRECTORIES", "/srv,~"),
        ("ALLOWED_DIRECTORIES", "*"),
    ],
)
def test_a_list_that_no_host_could_understand_stops_the_server(variable: str, text: str) -> None:
    environment = Environment({variable: text})
    environment.read_all(Conf)
    with pytest.raises(ImproperlyConfigured, match=f"{variable} must be") as stopped:
        environment.finish()
    assert text not in str(stopped.value)


def test_allowed_commands_and_directories_are_read_as_a_policy_reads_them() -> None:
    environment = Environment(
        {
            "ALLOWED_COMMANDS": " sleep, python3:shell ,/opt/tool/bin/run,",
            "ALLOWED_DIRECTORIES": "/srv/work, /tmp, /srv/app/../data",
        }
    )
    values = environment.read_all(Conf)
    environment.finish()
    assert values["ALLOWED_COMMANDS"] == ("sleep", "python3:shell", "/opt/tool/bin/run")
    assert values["ALLOWED_DIRECTORIES"] == ("/srv/work", "/tmp", "/srv/app/../data")
    assert Environment({"ALLOWED_COMMANDS": "*"}).read_all(Conf)["ALLOWED_COMMANDS"] == ("*",)


def test_a_declared_attribute_is_the_django_setting_of_its_name() -> None:
    assert Environment({"HOLDLINE_MAX_WAIT_SECONDS": "3"}).read_all(Conf)["MAX_WAIT_SECONDS"] == 3.0
    with override_settings(MAX_WAIT_SECONDS=4.0, ALLOWED_HOSTS=["a"]):
        assert Conf().max_wait_seconds == 4.0
        assert Conf().allowed_hosts == ("a",)


@pytest.mark.parametrize("text", ["inf", "1e300"])
def test_a_time_without_end_is_refused_and_named_once(text: str) -> None:
    environment = Environment({"S": text})
    setting = Seconds("S", 1.0, "")
    assert (environment.read(setting), environment.read(setting)) == (1.0, 1.0)
    with pytest.raises(ImproperlyConfigured) as refused:
        environment.finish()
    assert str(refused.value).count("S must be at most") == 1
