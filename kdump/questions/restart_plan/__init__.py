"""Predicts a broker's next startup from its disks, by replaying Kafka's own startup step by step."""
