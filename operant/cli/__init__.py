"""The command line: parses arguments, calls the API, prints results. No logic lives here."""
