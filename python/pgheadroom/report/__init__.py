"""
Reports: a result as tables, text, charts and one self-contained HTML page.

Presentation only: a report shows what a result file holds and computes no result of its own.
Import the module that is needed (`table`, `views`, `text`, `html`); only building charts imports
the chart library.
"""
