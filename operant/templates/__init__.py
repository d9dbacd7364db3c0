"""What `operant new` writes: parts that work as they are, whose names it replaces by those asked for."""
