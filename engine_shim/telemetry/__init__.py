"""What runs do, told to OpenTelemetry and Prometheus: derived from their records, as these are appended."""
