"""Making data by acting."""
