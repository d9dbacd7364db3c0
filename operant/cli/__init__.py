"""What the user typed: words to calls, and results to words. No logic lives here."""
