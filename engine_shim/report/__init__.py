"""The auditor's report of a store: what ran, who decided what, and what was verified of it."""
