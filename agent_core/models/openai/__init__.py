"""Any endpoint that speaks OpenAI's chat completions."""
