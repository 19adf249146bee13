"""What makes every change reversible: journal, lock, signal masking, and restoring after a crash."""
