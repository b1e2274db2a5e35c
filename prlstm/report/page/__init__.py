"""The results as one page of HTML: tables, charts in SVG, where every number comes from."""

from prlstm.report.page.build import build_page

__all__ = ["build_page"]
