"""Only words of our own are filled into hand-written statements."""

import pytest

from projects.storage.columns import sql


def test_words_are_filled_in_and_places_of_parameters_stay() -> None:
    statement = sql("SELECT {columns} FROM t WHERE id = %s", columns="""a, "b", COALESCE(c, '')""")
    assert statement == """SELECT a, "b", COALESCE(c, '') FROM t WHERE id = %s"""


@pytest.mark.parametrize("word", ["1; DROP TABLE t", "a -- rest", "/* a */", "a\\b", "a\x00"])
def test_a_word_that_could_end_a_statement_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="where is not a word"):
        sql("SELECT 1 WHERE {where}", where=word)
