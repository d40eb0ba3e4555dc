"""Secrets: found in any form in which they travel, and taken out."""
