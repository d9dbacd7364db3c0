"""The research tasks that come with Operant, a folder each."""
