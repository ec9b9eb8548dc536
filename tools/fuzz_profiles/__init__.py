"""
Random profiles over the format, each played on a server and in the twin.

    generator.py   a seed and a number -> a profile, as a file has it
    further.py     the fields that half of them have besides
    draw.py        choices that a seed decides
    trial.py       a profile -> equal, unequal, refused, or ended as nothing may
    smaller.py     a profile that differs -> the smallest one found that still does
    __main__.py    `make fuzz`

A figure that the twin states exactly has to be the server's to the unit. Intervals are counted: how
many held, by figure. What is found is kept under golden/found, where `make fuzz` plays it first.
"""
