"""What many recorded runs say, as the facts of an auditor's report."""
