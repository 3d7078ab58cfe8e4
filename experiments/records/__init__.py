"""Files of records: what they hold, other formats, and data sets to learn from."""
