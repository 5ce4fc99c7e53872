"""Examines disks with the questions of an incident, in the order of what to do first."""
