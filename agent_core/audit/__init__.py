"""What a recorded run proves: verify, replay, what-if, fork, diff. No way to the outside."""
