"""Commands that run workflows, and reach runs that go on."""
