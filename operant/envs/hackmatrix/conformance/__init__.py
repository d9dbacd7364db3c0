"""The conformance cases of the rules, and the check that holds any form of the game against them."""
