"""Replays of games: the page in a browser, pictures, videos and the terminal."""
