"""The program that a guest's own Python runs: `python THIS_FOLDER`, spoken to in lines of JSON."""

from operant_guest.desk import main

if __name__ == "__main__":
    main()
