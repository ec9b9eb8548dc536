"""
An advice: tables, statements, pictures, text and page.

    head.py        what goes first          overview.py    a line a table
    detail.py      all of one table         tables.py      its causes, its curve
    statements.py  what to run (sql.py)     values.py      numbers as text
    drawing.py     pictures                 figures.py     the chart of regrets
    text.py        terminal and Markdown    html.py        the page; csv.py: for other programs
"""
