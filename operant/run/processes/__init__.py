"""One session in several processes that something else started: torchrun, Slurm, Ray, or a person on two machines."""
