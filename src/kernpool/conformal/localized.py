r"""Intervals whose width is a quantile of the scores around each place.

.. math:: \hat m(q) \pm \min\Big\{ s : \sum_{i:\, S_i \le s} w_i K(\tilde q, x_i) \ge (1 - \alpha) \Big( \sum_i w_i
          K(\tilde q, x_i) + K(\tilde q, q) \Big) \Big\}

with the scores S, absolute residuals of calibration rows or of training rows left out one by one, and the kernel of the
fit at three times its bandwidth. The weight of the new row itself is at infinity: its score is not known.

Around the place itself, :math:`\tilde q = q`, that is ``"localized"``, of Guan [1]_ without her calibrated level. The
rows near a place are others for each place, so that the new row and they are not exchangeable, and nothing is
guaranteed. Around a random place, :math:`\tilde q \sim K(\cdot, q)`, it is ``"rlcp"`` [2]_: given that place, each row
is the new one with a probability in proportion to its weight there, which makes the coverage exact, and near it rows
cover as often as all do.

References
----------
.. [1] L. Guan, "Localized conformal prediction: a generalized inference framework for conformal prediction",
   Biometrika 110 (2023), 33-50.
.. [2] R. Hore and R. F. Barber, "Conformal prediction with local weights: randomization enables robust guarantees",
   JRSSB 87 (2025), 549-578, section 3.
"""

from __future__ import annotations

from kernpool.conformal.around import around
from kernpool.conformal.neighbours import Neighbours, upper_quantiles
from kernpool.conformal.predicting import predict
from kernpool.conformal.sentences import approximately, at_least
from kernpool.conformal.setting import Bounds, Setting
from kernpool.inference.smoother import Places

TOO_FEW = (
    "around them are too few rows for the level, whose largest score is exceeded too often; use more rows, a larger "
    "bandwidth, a lower level, or method='adaptive'"
)


def localized(setting: Setting) -> Bounds:
    """Find intervals from quantiles of scores around each place."""
    near = _neighbours(setting)
    return _bounds(setting, near, setting.places)


def randomized(setting: Setting) -> Bounds:
    """Find intervals from quantiles of scores around a random place near each."""
    near = _neighbours(setting)
    return _bounds(setting, near, near.draw(setting.places, setting.random))


def of_localized(setting: Setting) -> str:
    """Return what holds: nothing in finite samples."""
    return approximately(
        setting, "the rows near a place are not exchangeable with a new one there; method='rlcp' is the randomised form"
    )


def of_randomized(setting: Setting) -> str:
    """Return what holds: the level with calibration rows, on average over the random places too."""
    if setting.calibration.own:
        return approximately(
            setting, "training rows left out one by one are not exchangeable with a new one; give X_calibration"
        )
    return at_least(setting)


def _neighbours(setting: Setting) -> Neighbours:
    calibration = setting.calibration
    return Neighbours.of(setting.smoother, calibration.places, calibration.weight, setting.places)


def _bounds(setting: Setting, near: Neighbours, around_what: Places) -> Bounds:
    extra = near.log_density(setting.places, around_what)
    width = upper_quantiles(
        near.around(around_what), setting.smoother, setting.calibration.score, float(setting.level), extra
    )
    return around(predict(setting.smoother, setting.places), width)
