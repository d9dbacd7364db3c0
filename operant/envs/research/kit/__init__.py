"""What the shipped research tasks are made of: games, tables, lab runs, and the words of scripted agents."""
