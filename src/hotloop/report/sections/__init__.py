"""What a report says, before it is drawn: one file a kind of record, each of pure functions."""
