"""Spec files of other labs, read as they are and told in Operant's own words."""
