"""Numbers and settings in words."""

from collections.abc import Iterable
from typing import Any

from bilevel_core.schedules import Power, Steps


def listed(numbers: Iterable[float]) -> str:
    """Numbers with three digits, separated by commas."""
    return ", ".join(f"{number:.3g}" for number in numbers)


def shown(setting: Any) -> str:
    """A setting as a formula."""
    if isinstance(setting, Power):
        power = f"{setting.c:g} (t + {setting.w:g})^(-{setting.p:.3g})"
        return f"min({setting.cap:g}, {power})" if setting.cap != float("inf") else power
    if isinstance(setting, Steps):
        return f"{', '.join(f'{v:g}' for v in setting.values)}, cut at steps {', '.join(map(str, setting.at))}"
    return f"{setting:g}" if isinstance(setting, float | int) and not isinstance(setting, bool) else str(setting)
