"""What runs beside a verifiers environment, in its own Python: nothing here may import operant."""
