"""Commands that run workflows, and reach runs that are under way."""
