"""The mail server that one URL names, and URLs that are refused without a word of them."""

import pytest

from config.settings.email import email_settings


def test_a_url_names_a_mail_server_and_a_login() -> None:
    assert email_settings("") == {}
    found = email_settings("smtp+tls://ada:w%2Frd@mail.example.com")
    assert found == {
        "EMAIL_HOST": "mail.example.com",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": "ada",
        "EMAIL_HOST_PASSWORD": "w/rd",
        "EMAIL_USE_TLS": True,
        "EMAIL_USE_SSL": False,
    }


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com",
        "https://mail.example.com",
        "smtp://",
        "smtp://ada:hunter2/x@mail",
        "smtp://ada:1/hunter2@mail",
        "smtp://ada:1?hunter2@mail",
        "smtp://ada:1#hunter2@mail",
        "smtp://ada:hunter2[@mail",
    ],
)
def test_a_url_that_is_not_understood_is_refused_unrepeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"^a URL such as smtp\+tls://") as refused:
        email_settings(url)
    assert "hunter2" not in str(refused.value)
