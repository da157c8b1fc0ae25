"""What tests of scores and labels share."""

from __future__ import annotations

import pytest

from rarefy.tools.influence import class_probabilities


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer trees and one round of folds, where how well labels are checked is not asked."""
    monkeypatch.setattr(class_probabilities, "GROWN", 5)
    monkeypatch.setattr(class_probabilities, "ROUNDS", 1)
