"""What training comes to in endless dimension: closed forms against their definitions."""

from __future__ import annotations

import numpy as np

from rarefy.theory.unpruned_limit import limit_boundary, limit_ratio, limit_test_loss


def test_the_closed_form_boundary_is_where_the_closed_form_loss_is_half_of_chance() -> None:
    for classes in (2, 4, 10):
        for loss in (0.1, 1e-3):
            q = limit_ratio(classes, loss)
            assert np.isclose(limit_test_loss(q, classes, loss), 0.5 * np.log(classes))
            snr = limit_boundary(50, classes, loss)
            assert np.isclose(50 * snr**2 / classes, q)
    assert np.isnan(limit_ratio(4, 1.0))  # the training loss is above half of chance itself
    assert np.isclose(limit_test_loss(1e9, 4, 0.01), 0.01, rtol=1e-4)
    assert np.isclose(limit_test_loss(0.0, 4, 0.01), np.log(4))
