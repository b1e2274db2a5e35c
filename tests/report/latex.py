"""Whether TeX compiles what we write, where there is one."""

import shutil
import subprocess
from pathlib import Path

ENGINE = shutil.which("pdflatex")
DOCUMENT = r"""\documentclass{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs}\usepackage{xcolor}
\usepackage{pgfplots}\usepgfplotslibrary{groupplots}\pgfplotsset{compat=1.17}
\begin{document}
\input{%s}
\end{document}
"""


def assert_compiles(source: Path) -> None:
    """Compile it as a part of a document."""
    assert ENGINE is not None
    main = source.with_name("main.tex")
    main.write_text(DOCUMENT % source.name)
    command = [ENGINE, "-interaction=nonstopmode", "-halt-on-error", main.name]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert r"Overfull \hbox" not in done.stdout, "it is wider than the page"
    assert main.with_suffix(".pdf").stat().st_size > 1000
