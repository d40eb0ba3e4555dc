"""The commands about evidence for strangers."""
