"""The colours of the page, for light and for dark: the only place where they stand.

Text reaches a contrast of 4.5 to 1 on `ground` and on `raised`, curves 3 to 1; a test computes it.
"""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "ground": "#fcfbf8",
    "raised": "#f4f2ec",
    "ink": "#1d1f23",
    "quiet": "#5b5f66",
    "line": "#d8d4ca",
    "accent": "#0b5c9e",
    "right": "#146b3d",
    "wrong": "#a8321e",
    # curves: told apart by people who do not see all colours, and by their dashes
    "curve-1": "#0b62a6",
    "curve-2": "#c24a0a",
    "curve-3": "#00795a",
    "curve-4": "#9a4580",
    "curve-5": "#8a6a00",
    "curve-6": "#2f7fb8",
    "curve-7": "#3c3c42",
    "curve-8": "#8c5a3c",
}
DARK: Mapping[str, str] = {
    "ground": "#16181c",
    "raised": "#1f2227",
    "ink": "#e7e5df",
    "quiet": "#a6a9b0",
    "line": "#3a3e46",
    "accent": "#7cb8f0",
    "right": "#6fcf97",
    "wrong": "#f2907f",
    "curve-1": "#6cb2f2",
    "curve-2": "#f2935a",
    "curve-3": "#3fcaa0",
    "curve-4": "#dd9cc6",
    "curve-5": "#e3bb52",
    "curve-6": "#a5d3f5",
    "curve-7": "#d5d3cd",
    "curve-8": "#c9a184",
}
CURVES = sum(name.startswith("curve-") for name in LIGHT)
