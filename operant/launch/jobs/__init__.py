"""Jobs that outlive the command that submits them: on this machine, on a cluster, in a cloud."""
