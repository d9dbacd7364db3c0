"""The program that an external environment's own Python runs: `python THIS_FOLDER`, spoken to in lines of JSON."""

from operant_external.server import main

if __name__ == "__main__":
    main()
