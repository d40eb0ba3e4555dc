"""The engine: how runs begin, are driven, stopped and gone on with."""
