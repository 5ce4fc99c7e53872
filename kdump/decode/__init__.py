"""Keys and values -> decoded values: Kafka's own topics, formats of user data, and installed third-party decoders."""
