"""Keys and values -> what they say: Kafka's own topics, formats of user data, and decoders that others install."""
