"""`python -m carrel` is the command line."""

from carrel.fronts.cli.main import main

if __name__ == "__main__":
    main()
