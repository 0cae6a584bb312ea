"""Each mutation can be made in the product as it is now."""

from pathlib import Path

import pytest

from chaos.faults.kinds import KINDS
from chaos.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_product(mutation: Mutation, tmp_path: Path) -> None:
    copy = tmp_path / mutation.path
    copy.parent.mkdir(parents=True)
    copy.write_text((ROOT / mutation.path).read_text())
    mutation.make(tmp_path)
    compile(copy.read_text(), mutation.path, "exec")
    assert set(mutation.faults) <= set(KINDS)


def test_a_mutation_whose_text_is_gone_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("other")
    with pytest.raises(ValueError, match="exactly once"):
        Mutation("name", "file", "text", "change", (), "rule").make(tmp_path)
