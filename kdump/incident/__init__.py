"""Commands that ask many questions at once: doctor, explain, report."""
