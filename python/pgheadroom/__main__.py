"""`python -m pgheadroom` is the same as the program `pgheadroom`."""

from pgheadroom.cli import main

if __name__ == "__main__":
    main()
