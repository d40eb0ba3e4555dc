"""The world in which runs are driven, stopped and looked at in any order."""
