"""Secrets: found in every encoding in which they travel, and taken out."""
