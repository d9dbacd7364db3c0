"""Spec files of other labs, read as they are and translated to native specs."""
