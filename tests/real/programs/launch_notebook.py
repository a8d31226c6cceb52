# SPDX-License-Identifier: MIT
"""A notebook of two cells, run by Jupyter's own client in a kernel."""
import os

import nbclient
import nbformat

here = os.path.dirname(os.path.abspath(__file__))
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"import sys; sys.path.insert(0, {here!r}); import rank_takes"),
                                       nbformat.v4.new_code_cell("rank_takes.work(3)")])
nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
