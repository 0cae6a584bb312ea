"""The last prompt of a process is known again with input behind it."""

from controller_client.terminal_state.prompt.memory import PromptMemory


def test_a_prompt_with_input_behind_it_is_the_same_prompt() -> None:
    memory = PromptMemory()
    memory.on_claim(7, "line", "? Name \u203a ")
    assert memory.continued(7, "? Name \u203a ada") == "line"
    assert memory.continued(8, "? Name \u203a ada") is None
    assert memory.continued(7, "? Age \u203a ") is None


def test_only_prompts_for_lines_and_with_text_are_remembered() -> None:
    memory = PromptMemory()
    memory.on_claim(7, "key", "? Pick")
    assert memory.continued(7, "? Pick one") is None
    memory.on_claim(7, "line", "")
    assert memory.continued(7, "anything") is None
    memory.on_claim(0, "line", "a")
    assert memory.continued(0, "ab") is None


def test_a_shell_may_read_for_a_command_once_a_line_was_typed() -> None:
    memory = PromptMemory()
    memory.on_line()
    assert not memory.has_answered_shell(7)
    memory.on_claim(7, "shell", "vm# ")
    assert not memory.has_answered_shell(7)
    memory.on_line()
    assert memory.has_answered_shell(7)
    assert not memory.has_answered_shell(8)
    memory.on_claim(7, "shell", "vm# ")
    assert not memory.has_answered_shell(7)
