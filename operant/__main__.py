"""`python -m operant` is the command line."""

from operant.cli.app import main

if __name__ == "__main__":
    main()
