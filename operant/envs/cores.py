"""The variable by which a launcher tells a session how many cores are its own."""

CORES_VARIABLE = "OPERANT_CORES"
