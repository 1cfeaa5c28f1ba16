"""The kernels, side by side; and the two that are called Epanechnikov."""

from kernpool import KernelDisplay, get_kernel

KernelDisplay.from_kernels(["gaussian", "boxcar", "constant", "epanechnikov"]).figure_.savefig("kernels.png")
KernelDisplay.from_kernels(["epanechnikov", "triangular"]).figure_.savefig("two-epanechnikovs.png")

for name in ("epanechnikov", "triangular"):
    kernel = get_kernel(name)
    print(f"{name}: K(1/2) = {kernel.profile(0.5)}, R(K) = {kernel.roughness:.4f}, mu2(K) = {kernel.second_moment:.4f}")
