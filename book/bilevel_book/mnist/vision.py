"""torchvision, also beside a torch for processors only, as it is installed on Linux.

The torchvision of the registry is built for CUDA. Without CUDA its compiled operators do not load, and its import ends
with "operator torchvision::nms does not exist", because it describes these operators to torch.compile. Datasets and
transforms need none of them: without these descriptions they work, and an operator that is called says what it lacks.
"""

import importlib
import sys
from types import ModuleType

DESCRIPTIONS = "torchvision._meta_registrations"


def import_torchvision(part: str) -> ModuleType:
    """A part of torchvision, such as "datasets"; where its operators are missing, without their descriptions."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # what the failed import has left
        sys.modules[DESCRIPTIONS] = ModuleType(DESCRIPTIONS)
    return importlib.import_module(f"torchvision.{part}")


def has_operators() -> bool:
    """Whether torchvision's compiled operators are there."""
    return import_torchvision("extension")._has_ops()
