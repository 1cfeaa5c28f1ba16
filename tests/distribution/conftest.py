"""Ways in which distributions are computed."""

import pytest

from tests.support.ordered_sums import never_by_table


@pytest.fixture(params=["tables", "loops"])
def way(request, monkeypatch):
    if request.param == "loops":
        never_by_table(monkeypatch)
