"""Static files have another address when one of them changes, and browsers keep them for good."""

import re
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.templatetags.static import static
from django.test import Client

from config.settings.static_names import static_address

ROOT = Path(__file__).resolve().parents[4]


def test_a_changed_file_changes_every_address(tmp_path: Path) -> None:
    for place in ("console/static", "projects/static", "console/browser"):
        shutil.copytree(ROOT / place, tmp_path / place)
    before = static_address(tmp_path)
    assert f"/{before}" == settings.STATIC_URL
    # Files that are fetched are known by their lock.
    (tmp_path / "console/static/console/vendor").mkdir(exist_ok=True)
    (tmp_path / "console/static/console/vendor/xterm.mjs").write_text("fetched")
    assert static_address(tmp_path) == before
    with (tmp_path / "console/static/console/keys.js").open("a") as script:
        script.write("// changed\n")
    changed = static_address(tmp_path)
    (tmp_path / "console/browser/package-lock.json").write_text("{}")
    assert len({before, changed, static_address(tmp_path)}) == 3


# The end of a response looks at a connection that an earlier test left open.
@pytest.mark.django_db
def test_a_file_is_kept_for_good_under_its_address_only() -> None:
    kept = Client().get(static("console/keys.js"))
    assert kept.status_code == 200
    assert "immutable" in kept["Cache-Control"]
    kept.close()
    assert Client().get("/static/console/keys.js").status_code == 404


@pytest.mark.django_db
def test_files_of_another_release_are_left_to_another_server() -> None:
    """A proxy asks the next server after 503, and takes 404 for the answer."""
    own = static("console/keys.js")
    of_another = re.sub("[0-9a-f]{12}", "0" * 12, own)
    assert of_another != own
    assert Client().get(of_another).status_code == 503
    missing = Client().get(static("console/none.js"))
    assert missing.status_code == 404
    assert {missing["Cache-Control"], Client().get(of_another)["Cache-Control"]} == {"no-store"}
    assert Client().get("/static/0/console/keys.js").status_code == 404
