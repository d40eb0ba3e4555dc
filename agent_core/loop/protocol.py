"""The Action/Final protocol: one JSON object a reply, read strictly or not at all."""
