"""A page with sliders over the axes of any study, served here or saved as one file.

Weighed by what they would add to an installation and by what a saved page can still do: dash (18
packages, 10 MB) and marimo (20, 52 MB) give pages that are dead without their server or the
network, panel (18, 42 MB) saves sliders only by drawing every combination of their positions. The
standard library's server and plotly.js, which the report has anyway, add nothing but a template and
a script of 300 lines, and the saved page is the served one: charts are drawn in the browser from
the numbers of all cells, the study's own figures come from the server or from those that were
saved.
"""
