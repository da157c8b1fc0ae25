"""Influence and label check as scikit-learn has its estimators: parameters, ``fit``, attributes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from rarefy.core.errors import bad_value
from rarefy.core.settings import resolve_device
from rarefy.tools.influence.label_check import check_labels
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.influence.scoring import influence_of
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.samples import Samples
from rarefy.tools.samples.standardizing import standardized


class _OfLabelledSamples(BaseEstimator):
    """What both take: rows of numbers and a label for each, which must not be left out."""

    standardize: bool
    device: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _samples(self, X: Any, y: Any) -> Samples:
        X, y = validate_data(self, X, y, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        names = [str(label) for label in self.classes_]
        return standardized(from_arrays(X, codes, classes=names), self.standardize)


class InfluenceScorer(_OfLabelledSamples):
    """What the squared norm of a class's covariance loses without each of its samples (Xu and
    Chen, "Rethinking Benign Overfitting in Two-Layer Neural Networks", Eq. (10)).

    Arguments:
        contamination: share of each class that ``fit_predict`` calls atypical.
        standardize: bring features to mean 0 and std 1 first.
        ddof: covariances are divided by n - ddof, 0 or 1.
        device: where it is computed: ``cpu``, ``cuda`` or ``auto``.

    Attributes:
        influence_: (n,), to be compared within a class.
        percentile_: (n,), of the influence within its class, 0 to 100. Both are NaN in classes too
            small for a covariance without one sample.
        classes_: the labels.

    Example:
        >>> X, y = load_wine(return_X_y=True)
        >>> rarefy.InfluenceScorer().fit(X, y).percentile_.shape
        (178,)
    """

    def __init__(
        self,
        contamination: float = 0.05,
        standardize: bool = True,
        ddof: int = 1,
        device: str = "auto",
    ) -> None:
        self.contamination = contamination
        self.standardize = standardize
        self.ddof = ddof
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Score every row within its class.

        Arguments:
            X: (n, d).
            y: (n,), the labels.

        Returns:
            The estimator itself.

        Example:
            >>> scorer = rarefy.InfluenceScorer().fit(*load_wine(return_X_y=True))
            >>> scorer.percentile_.max()
            np.float64(100.0)
        """
        if not 0 < self.contamination <= 0.5:
            raise bad_value("contamination", self.contamination, "must be above 0, at most 0.5")
        samples = self._samples(X, y)
        scores = influence_of(samples, resolve_device(self.device), self.ddof)
        self.influence_: NDArray[np.float64] = scores.influence
        self.percentile_: NDArray[np.float64] = percentiles(scores.influence, samples.labels)
        return self

    def fit_predict(self, X: Any, y: Any) -> NDArray[np.int64]:
        """The samples with the highest influence of their class.

        Arguments:
            X: (n, d).
            y: (n,), the labels.

        Returns:
            (n,): -1 for those, 1 for all others.

        Example:
            >>> X, y = load_wine(return_X_y=True)
            >>> (rarefy.InfluenceScorer(contamination=0.1).fit_predict(X, y) == -1).mean().round(2)
            np.float64(0.1)
        """
        self.fit(X, y)
        return np.where(self.percentile_ > 100 * (1 - self.contamination), -1, 1)


class LabelCheck(_OfLabelledSamples):
    """Which labels are in doubt, by classifiers that have not seen the sample (Northcutt et al.,
    "Confident Learning", with changes for rare classes).

    Arguments:
        folds: parts of the data, each asked by classifiers that are fitted to the others.
        standardize, device: as in ``InfluenceScorer``.

    Attributes:
        label_issues_: (n,), bool.
        suggested_labels_: (n,), the given label where nothing else is suggested.
        given_probability_, suggested_probability_: (n,), of the given and of the suggested label;
            NaN in classes of one sample, which cannot be checked.
        notes_: what could not be said of which class.
        classes_: the labels.

    Example:
        >>> X, y = load_wine(return_X_y=True)
        >>> y[0] = 2  # a wrong label
        >>> check = rarefy.LabelCheck().fit(X, y)
        >>> check.label_issues_.nonzero()[0].tolist(), int(check.suggested_labels_[0])
        ([0], 0)
    """

    def __init__(self, folds: int = 5, standardize: bool = True, device: str = "auto") -> None:
        self.folds = folds
        self.standardize = standardize
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Check the label of every row.

        Arguments:
            X: (n, d).
            y: (n,), the labels.

        Returns:
            The estimator itself.

        Example:
            >>> check = rarefy.LabelCheck(folds=2).fit(*load_wine(return_X_y=True))
            >>> check.suggested_labels_.shape
            (178,)
        """
        if isinstance(self.folds, bool) or not isinstance(self.folds, int) or self.folds < 2:
            raise bad_value("folds", self.folds, "must be a whole number, at least 2")
        samples = self._samples(X, y)
        found = check_labels(samples, resolve_device(self.device), folds=self.folds)
        self.label_issues_: NDArray[np.bool_] = found.issue
        self.suggested_labels_ = self.classes_[found.suggested]
        self.given_probability_: NDArray[np.float64] = found.given_probability
        self.suggested_probability_: NDArray[np.float64] = found.suggested_probability
        self.notes_ = list(found.notes)
        return self

    def fit_predict(self, X: Any, y: Any) -> NDArray[np.int64]:
        """Which labels are in doubt.

        Arguments:
            X: (n, d).
            y: (n,), the labels.

        Returns:
            (n,): -1 for those, 1 for all others.

        Example:
            >>> X, y = load_wine(return_X_y=True)
            >>> y[0] = 2  # a wrong label
            >>> rarefy.LabelCheck().fit_predict(X, y)[:3]
            array([-1,  1,  1])
        """
        return np.where(self.fit(X, y).label_issues_, -1, 1)
