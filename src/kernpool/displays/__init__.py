"""Pictures in the style of scikit-learn: data in the constructor, style in `plot`, no mathematics."""

from kernpool.displays.attention import AttentionDisplay
from kernpool.displays.bandwidth_path import BandwidthPathDisplay
from kernpool.displays.curve import KernelCurveDisplay
from kernpool.displays.kernels import KernelDisplay
from kernpool.displays.style import import_pyplot
from kernpool.displays.training import TrainingDisplay

__all__ = [
    "AttentionDisplay",
    "BandwidthPathDisplay",
    "KernelCurveDisplay",
    "KernelDisplay",
    "TrainingDisplay",
    "import_pyplot",
]
