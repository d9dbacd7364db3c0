"""Planning past one machine: a discrete-event simulation of generators, verifiers, trainers and weight transfer."""
