"""Products of a kernel with itself at another bandwidth are sums of kernels; new powers have loops, and no names."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernpool import get_kernel, kernel_names, make_kernel, register_kernel
from kernpool.kernels import COMPILED, INTERNAL, Polynomial, is_built_in, is_compiled, products, square
from tests.support.problems import with_products

NAMES = kernel_names()
OWN = make_kernel("cauchy of products", lambda u: 1 / (1 + u**2) ** 2)


def summed(terms, u):
    return sum(term.factor * term.kernel.profile(u / term.width) for term in terms)


@given(name=st.sampled_from(with_products(NAMES)), ratio=st.floats(1.0, 1e3))
def test_terms_add_up_to_the_product(name, ratio):
    kernel, u = get_kernel(name), np.linspace(0.0, 3.0, 301)
    terms = products(kernel, ratio)
    exact = kernel.profile(u) * kernel.profile(u / ratio)
    assert_allclose(summed(terms, u), exact, rtol=2e-14, atol=0)
    assert all(term.factor > 0 and 0 < term.width <= 1 for term in terms)
    assert all(term.kernel.composition == kernel.composition for term in terms)
    assert kernel.composition == "radial" or len(terms) == 1


@pytest.mark.parametrize("name", with_products(NAMES))
def test_a_square_is_one_term_and_known_to_loops_but_for_two_kernels(name):
    term = square(get_kernel(name))
    assert is_compiled(term.kernel) == (name.removeprefix("product ") not in ("cosine", "logistic"))
    u = np.linspace(0.0, 2.0, 201)
    assert_allclose(summed([term], u), get_kernel(name).profile(u) ** 2, rtol=1e-14, atol=0)


def test_products_in_closed_form():
    """Widths of a Gaussian and of Laplace, coefficients of Epanechnikov at sqrt(2)."""
    gaussian, laplace, epanechnikov = (get_kernel(name) for name in ("gaussian", "laplace", "epanechnikov"))
    (one,) = products(gaussian, 2**0.5)
    assert one.width == pytest.approx((2 / 3) ** 0.5, rel=1e-15)
    assert one.kernel is gaussian
    assert square(laplace) == (0.5, laplace, 0.5)
    terms = products(epanechnikov, 2**0.5)
    assert [term.kernel.name for term in terms] == ["epanechnikov", "biweight"]
    heights = [term.factor * term.kernel.form.height for term in terms]
    assert_allclose(heights, [9 / 32, 9 / 32], rtol=1e-15)


def test_kernels_of_ones_own_multiply_profiles_and_logarithms():
    u = np.array([0.0, 0.7, 30.0])
    (term,) = products(OWN, 1.5)
    assert_allclose(term.kernel.profile(u), OWN.profile(u) * OWN.profile(u / 1.5), rtol=1e-15)
    assert_allclose(term.kernel.log_profile(u), np.log(term.kernel.profile(u)), rtol=1e-13)
    assert products(OWN, 1.5)[0].kernel is term.kernel  # kernels are equal only to themselves, so one is made once
    assert get_kernel(term.kernel) is term.kernel


def test_a_form_of_ones_own_has_no_named_powers():
    high = replace(OWN, name="power of 7", profile=lambda u: np.maximum(1 - u, 0) ** 7, form=Polynomial(1, 7, 1.0))
    assert not is_compiled(square(high).kernel)


@pytest.mark.parametrize("name", INTERNAL)
def test_internal_kernels_are_found_and_not_listed(name):
    kernel = get_kernel(name)
    assert name not in NAMES
    assert name in COMPILED
    assert is_compiled(kernel)
    assert not is_built_in(kernel)
    with pytest.raises(ValueError, match="already taken"):
        register_kernel(kernel)


def test_no_message_names_an_internal_kernel():
    with pytest.raises(ValueError, match="unknown kernel") as raised:
        get_kernel("one_minus_square_4")
    assert "_one_minus" not in str(raised.value).replace("'one_minus_square_4'", "")
