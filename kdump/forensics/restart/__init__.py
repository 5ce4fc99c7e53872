"""What a broker does at its next start, foretold from its disks: a replay of Kafka's own start, step by step."""
