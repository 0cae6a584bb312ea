"""Production refuses unsafe settings, and names all of them in one error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config.settings.production_rules import report_unsafe
from projects.conf.setting import Environment

ROOT = Path(__file__).resolve().parents[4]
SAFE = {
    "HOLDLINE_SECRET_KEY": "n4Tq8zK1vX7cP0bW5mR2sJ9dL6hG3fY-aEuOiQyVkZxCtBwNjMp",
    "HOLDLINE_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
    "HOLDLINE_ALLOWED_HOSTS": "holdline.example.com",
    "HOLDLINE_PUBLIC_URL": "https://holdline.example.com",
    "DATABASE_URL": "postgres://holdline:secret@db.example.com/holdline",
    "REDIS_URL": "redis://:secret@redis.example.com:6379/0",
    "HOLDLINE_METRICS_TOKEN": "0123456789abcdef01234567",
}
UNSAFE = {
    "HOLDLINE_SECRET_KEY": "a" * 60,
    "HOLDLINE_ENCRYPTION_KEYS": "",
    "HOLDLINE_ALLOWED_HOSTS": "holdline.example.com,*",
    "HOLDLINE_ALLOWED_ORIGINS": "http://tools.example.com",
    "HOLDLINE_PUBLIC_URL": "http://holdline.example.com",
    "HOLDLINE_DEBUG": "1",
    "HOLDLINE_LOG_LEVEL": "debug",
    "DATABASE_URL": "postgres://holdline@db.example.com/holdline",
    "REDIS_URL": "redis://redis.example.com:6379/0",
    "HOLDLINE_METRICS_TOKEN": "short",
}


def _problems(variables: dict[str, str]) -> str:
    environment = Environment(variables)
    report_unsafe(environment)
    try:
        environment.finish()
    except ImproperlyConfigured as error:
        return str(error)
    return ""


def test_safe_settings_pass() -> None:
    assert _problems(SAFE) == ""


@pytest.mark.parametrize("name", UNSAFE)
def test_each_unsafe_setting_is_named_and_its_value_is_not(name: str) -> None:
    text = _problems({**SAFE, name: UNSAFE[name]})
    assert f"{name} must " in text
    assert text.count(" must ") == 1
    if name in {"HOLDLINE_SECRET_KEY", "HOLDLINE_METRICS_TOKEN", "DATABASE_URL", "REDIS_URL"}:
        assert UNSAFE[name] not in text


def test_unset_variables_are_unsafe_too() -> None:
    text = _problems({})
    assert [name for name in SAFE if f"{name} must" in text] == [
        "HOLDLINE_SECRET_KEY",
        "HOLDLINE_ENCRYPTION_KEYS",
        "HOLDLINE_ALLOWED_HOSTS",
        "HOLDLINE_PUBLIC_URL",
    ]


def test_several_processes_need_one_database() -> None:
    assert "DATABASE_URL must be postgres://" in _problems({**SAFE, "DATABASE_URL": ""})
    assert _problems({**SAFE, "DATABASE_URL": "", "REDIS_URL": ""}) == ""


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6379/0", "unix:///run/redis.sock", "redis://localhost/0"]
)
def test_a_local_server_needs_no_password_in_its_url(url: str) -> None:
    assert _problems({**SAFE, "REDIS_URL": url}) == ""


def test_a_url_that_is_none_is_left_to_its_reader() -> None:
    assert _problems({**SAFE, "REDIS_URL": "redis://[::1"}) == ""


def _check_deploy(tmp_path: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HOLDLINE_") and name not in SAFE
    }
    environment = {
        **kept,
        **variables,
        "HOLDLINE_DATA_DIR": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "config.settings.production",
    }
    command = [
        sys.executable,
        "-W",
        "error",
        "manage.py",
        "check",
        "--deploy",
        "--fail-level",
        "INFO",
    ]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )


def test_the_deployment_check_is_clean(tmp_path: Path) -> None:
    done = _check_deploy(tmp_path, SAFE)
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


def test_an_unsafe_start_is_refused_in_one_error(tmp_path: Path) -> None:
    done = _check_deploy(tmp_path, {**UNSAFE, "HOLDLINE_SWEEP_SECONDS": "often"})
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert [
        name for name in (*UNSAFE, "HOLDLINE_SWEEP_SECONDS") if f"{name} must" not in last
    ] == []
