"""Research tasks: a workspace in a sandbox of its own, tools, a budget, and a grader that is out of reach."""
