"""Every Python process with this folder on its path trains with the toy engine."""

import operant.engines

operant.engines.ENGINES["torch"] = "toy_engine"
