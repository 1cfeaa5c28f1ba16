"""Kernel similarities of torch: the numbers of `pool` for every kernel and form, gradients, and edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

import kernpool
from kernpool import pool, pooling_weights
from kernpool.kernels import BUILT_IN, get_kernel
from kernpool.torch import AttentionPooling, GaussianSimilarity, KernelSimilarity, attention_pool
from kernpool.torch.similarities import LOG_PROFILES

COMPACT = [name for name in BUILT_IN if get_kernel(name).is_compact]
FORMS = ["shared", "per_feature", "linear"]
# Their logits have a continuous derivative inside the support, zero distance included.
SMOOTH = ["gaussian", "epanechnikov", "biweight", "triweight", "tricube", "cosine", "logistic", "constant"]
KINKED = ["triangular", "laplace"]
MINE = kernpool.make_kernel("my cauchy", lambda u: 1 / (1 + u**2) ** 2)
MASKED = np.ma.masked_array([0.5, 2.0], mask=[False, True])


def kernel_layer(kernel, width=1.0, **options):
    return AttentionPooling(KernelSimilarity(kernel, width, dtype=torch.float64, **options))


def tensors(*arrays):
    return [torch.tensor(array) for array in arrays]


@pytest.mark.parametrize("kernel", BUILT_IN)
def test_profiles_are_those_of_the_kernels(kernel):
    assert tuple(LOG_PROFILES) == BUILT_IN
    u = np.r_[np.linspace(0.0, 2.0, 201), 40.0, 1e6]
    found = LOG_PROFILES[kernel](torch.tensor(u) ** 2).numpy()
    assert_allclose(found, get_kernel(kernel).log_profile(np.sqrt(u**2)), rtol=1e-13, atol=1e-13)
    assert torch.isnan(LOG_PROFILES[kernel](torch.tensor(torch.nan)))  # and not far away


@pytest.mark.covering
@pytest.mark.parametrize("kernel", BUILT_IN)
@pytest.mark.parametrize("parameterization", ["log_bandwidth", "inverse_bandwidth"])
@pytest.mark.parametrize("width", [0.3, 1.7, 50.0])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("form", ["shared", "per_feature"])
def test_the_numbers_of_pool(kernel, parameterization, width, offset, form, generator):
    query, key = generator.normal(size=(2, 1, 9, 2)) + offset, generator.normal(size=(3, 30, 2)) + offset
    value, mask = generator.normal(size=(2, 3, 30, 2)), generator.random((3, 9, 30)) < 0.7
    query[0, 0, 4] += 100.0  # an empty window where the support is compact
    widths = width if form == "shared" else [width, 1.5 * width]
    layer = kernel_layer(kernel, widths, parameterization=parameterization, form=form)
    found = list(layer(*tensors(query, key, value, mask), return_weights=True))
    options = {"kernel": kernel, "bandwidth": widths, "attn_mask": mask, "empty": "zero"}
    # Far away the promise is 8 eps (1 + u^2 / 2), and rows that far are compared with that.
    far = np.abs(query - offset).max(axis=-1) > 50
    tolerance = np.where(far, 8 * 2.2e-16 * (1 + (145 / width) ** 2 / 2), 1e-12)[..., None]
    expected = pool(query, key, value, **options), pooling_weights(query, key, **options)
    found.append(attention_pool(*tensors(query, key, value, mask), similarity=layer.similarity, algorithm="fused"))
    for one, other in zip(found, (*expected, expected[0]), strict=True):
        assert np.all(np.abs(np.asarray(one.detach()) - other) <= np.maximum(tolerance, 1e-12))
    if offset == 0 and kernel != "boxcar":  # which jumps where rounding moves keys over its edge
        narrow = [torch.tensor(array, dtype=torch.float32) for array in (query, key, value)]
        similarity = layer.similarity.float()
        narrow = attention_pool(*narrow, torch.tensor(mask), similarity=similarity, algorithm="fused")
        assert narrow.dtype == torch.float32
        seen = np.broadcast_to(~far[..., None], expected[0].shape)
        assert_allclose(narrow.detach().numpy()[seen], expected[0][seen], rtol=0, atol=5e-5)


@pytest.mark.parametrize("kernel", BUILT_IN)
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("algorithm", ["dense", "fused"])
def test_a_linear_map(algorithm, kernel, offset, generator):
    """Pooling the mapped points; and keys far from the origin lose nothing by the map."""
    query, key = (generator.normal(size=(n, 3)) + offset - offset for n in (8, 40))  # to add it again is exact
    value, matrix = generator.normal(size=(40, 1)), generator.normal(size=(2, 3))
    layer = kernel_layer(kernel, form="linear", size=3, output_size=2)
    with torch.no_grad():
        layer.similarity.map.copy_(torch.tensor(matrix))
    expected = pool(query @ matrix.T, key @ matrix.T, value, kernel=kernel, empty="zero")
    shifted = tensors(query + offset, key + offset, value)
    found = attention_pool(*shifted, similarity=layer.similarity, algorithm=algorithm).detach()
    assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", [*SMOOTH, *KINKED])
def test_gradients(kernel, form, generator):
    """Away from the edge of the support; for the smooth ones with a query on a key, which for the others is a kink."""
    query, key, value = tensors(*(generator.uniform(size=(n, 2)) for n in (4, 6, 6)))
    if kernel in SMOOTH:
        query[0] = key[2]
    layer = kernel_layer(kernel, [1.9, 1.6] if form != "shared" else 1.9, form=form)
    (parameter,) = layer.parameters()
    (name,) = layer.state_dict()

    def by_all(query, key, value, parameter):
        return torch.func.functional_call(layer, {name: parameter}, (query, key, value))

    inputs = [tensor.requires_grad_() for tensor in (query, key, value, parameter.detach().clone())]
    assert torch.autograd.gradcheck(by_all, inputs)


@pytest.mark.parametrize("kernel", BUILT_IN)
def test_outside_of_the_support_and_at_distance_zero(kernel):
    """Keys at the query, inside, at the edge, beyond, and so far that squares overflow."""
    key = torch.tensor([[0.0], [0.5], [1.0], [1.5], [1e200]], dtype=torch.float64, requires_grad=True)
    query = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    similarity = KernelSimilarity(kernel, dtype=torch.float64)
    logits = similarity(query, key)
    finite = torch.isfinite(logits)[0]
    edge = kernel == "boxcar" or kernel not in COMPACT
    assert finite.tolist() == [True, True, edge, kernel not in COMPACT, kernel == "constant"]
    value = torch.arange(5.0, dtype=torch.float64)[:, None]
    attention_pool(query, key, value, similarity=similarity).sum().backward()
    for gradient in (query.grad, key.grad, similarity.log_bandwidth.grad):
        assert torch.isfinite(gradient).all()
    assert key.grad[~finite].eq(0).all()


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_bandwidth", [-40.0, -20.0, 20.0, 40.0])
@pytest.mark.parametrize("form", ["shared", "per_feature"])
@pytest.mark.parametrize("kernel", BUILT_IN)
@pytest.mark.parametrize("algorithm", ["dense", "fused"])
def test_widths_that_training_drives_to_an_end(algorithm, kernel, form, log_bandwidth, dtype, generator):
    """The nearest key, or nothing; and the mean of all keys: finite either way, and so are the gradients."""
    query, key, value = (torch.tensor(generator.normal(size=(n, 2)), dtype=dtype) for n in (6, 9, 9))
    query[0] = key[3]
    similarity = KernelSimilarity(kernel, form=form, size=2, dtype=dtype)
    torch.nn.init.constant_(similarity.log_bandwidth, log_bandwidth)
    for tensor in (query, key, value):
        tensor.requires_grad_()
    pooled = attention_pool(query, key, value, similarity=similarity, algorithm=algorithm)
    pooled.square().sum().backward()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (query, key, value, similarity.log_bandwidth))
    mean = value.detach().mean(dim=0).expand(6, 2)
    nearest = value.detach()[torch.cdist(query.double(), key.double()).argmin(dim=1)]
    if kernel == "constant" or log_bandwidth > 0:
        expected = mean
    elif kernel in COMPACT:
        expected = torch.where(torch.arange(6)[:, None] == 0, nearest, 0.0)
    else:
        expected = nearest
    torch.testing.assert_close(pooled.detach(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", BUILT_IN)
def test_an_inverse_bandwidth_of_zero_is_a_stationary_point(kernel):
    layer = kernel_layer(kernel, parameterization="inverse_bandwidth")
    torch.nn.init.zeros_(layer.similarity.w)
    x = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    pooled = layer(x, x, x)
    pooled.sum().backward()
    assert pooled.flatten().tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert layer.similarity.w.grad == 0


def test_second_derivatives_with_a_query_on_a_key(generator):
    x, value = tensors(generator.uniform(size=(4, 2)), generator.normal(size=(4, 1)))
    for kernel in ("gaussian", "epanechnikov", "biweight", "triweight"):
        layer = kernel_layer(kernel, 2.0)
        assert torch.autograd.gradgradcheck(lambda q, layer=layer: layer(q, x, value), x.clone().requires_grad_())


@pytest.mark.parametrize("form", FORMS)
def test_half_precision_and_automatic_mixed_precision(form, generator):
    query, key, value = (torch.tensor(generator.normal(size=(n, 2)), dtype=torch.float32) for n in (5, 9, 9))
    similarity = KernelSimilarity("laplace", 0.5, form=form, size=2)
    expected = attention_pool(query, key, value, similarity=similarity)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = similarity(query, key)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, similarity(query, key))
    for dtype in (torch.float16, torch.bfloat16):
        found = attention_pool(query.to(dtype), key.to(dtype), value.to(dtype), similarity=similarity.to(dtype))
        assert found.dtype == dtype
        torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.05)


def test_names_of_state_and_round_trips(tmp_path):
    cases = [
        ({"form": "shared"}, "log_bandwidth", ()),
        ({"form": "per_feature", "size": 3, "parameterization": "inverse_bandwidth"}, "w", (3,)),
        ({"form": "linear", "size": 3, "output_size": 2}, "map", (2, 3)),
    ]
    for options, name, shape in cases:
        similarity = KernelSimilarity("cosine", 0.5, **options)
        assert {key: tuple(tensor.shape) for key, tensor in similarity.state_dict().items()} == {name: shape}
        torch.save(similarity.state_dict(), tmp_path / "weights.pt")
        other = KernelSimilarity("cosine", 9.0, **options)
        other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
        assert other.bandwidth == pytest.approx(0.5 if shape == () else [0.5] * shape[0])
        other.reset_parameters()
        assert other.bandwidth == pytest.approx(9.0 if shape == () else [9.0] * shape[0])


@pytest.mark.parametrize("parameterization", ["log_bandwidth", "inverse_bandwidth"])
@pytest.mark.parametrize(("form", "width"), [("shared", 0.3), ("per_feature", [0.3, 2.0]), ("linear", 0.3)])
def test_a_bandwidth_is_that_of_the_parameter_and_can_be_set(form, width, parameterization, generator):
    options = {"form": form, "size": 2, "parameterization": parameterization, "dtype": torch.float64}
    found, expected = GaussianSimilarity(1.5, **options), GaussianSimilarity(width, **options)
    (parameter,) = found.parameters()
    found.bandwidth = width
    with pytest.raises(ValueError, match="bandwidth must be positive and finite, got 0"):
        found.bandwidth = 0
    assert parameter is next(found.parameters())  # which an optimizer holds
    assert torch.equal(parameter, *expected.parameters())
    query, key = tensors(*(generator.normal(size=(rows, 2)) for rows in (5, 6)))
    found(query, key).sum().backward()
    torch.optim.SGD(found.parameters(), lr=0.01).step()
    assert found.bandwidth != pytest.approx(width, rel=1e-3)
    if form != "linear":
        copy = GaussianSimilarity(found.bandwidth, **options)
        torch.testing.assert_close(copy(query, key), found(query, key))


@pytest.mark.parametrize("form", FORMS)
def test_a_model_may_be_built_without_memory_first(form):
    with torch.device("meta"):
        layer = AttentionPooling(KernelSimilarity("laplace", 0.5, form=form, size=2))
        assert layer(torch.zeros(4, 2), torch.zeros(5, 2), torch.zeros(5, 1)).shape == (4, 1)
    similarity = layer.to_empty(device="cpu").similarity
    similarity.reset_parameters()
    assert similarity.bandwidth == pytest.approx(0.5 if form == "shared" else [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
        ({"form": "diagonal"}, "form must be one of 'shared', 'per_feature', 'linear', got 'diagonal'"),
        ({"form": "linear"}, "together with size=.* got 1.0 with form='linear' and size=None"),
        ({"form": "per_feature", "size": 0}, "size must be an integer from 1 on, got 0"),
        ({"form": "per_feature", "size": 3, "bandwidth": [1.0, 2.0]}, "one per feature, got .* and size=3"),
        ({"form": "per_feature", "bandwidth": [1.0, -2.0]}, "bandwidth must be positive and finite"),
        ({"form": "per_feature", "bandwidth": []}, "bandwidth must be one number"),
        ({"bandwidth": [1.0, 2.0]}, "one per feature, got .* with form='shared'"),
        *(({"bandwidth": width}, "bandwidth must be positive") for width in (0.0, -1.0, np.nan, np.inf)),
        ({"output_size": 2}, "belongs to form='linear'"),
        ({"form": "linear", "size": 2, "output_size": 3}, "at most the number of features, .* got 3 for 2 features"),
        ({"parameterization": "sigma"}, "parameterization must be"),
        ({"bandwidth": "scott"}, "bandwidth must be a positive number, or one per feature, got 'scott'"),
        *(({"bandwidth": width}, "bandwidth is a masked array") for width in (MASKED, [MASKED[:1], MASKED[1:]])),
        ({"kernel": MINE}, r"made of NumPy functions.*use one of gaussian, .* or write an nn.Module"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelSimilarity(**arguments)
