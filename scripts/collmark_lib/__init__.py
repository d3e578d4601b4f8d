"""What scripts/collmark is made of: one module per command, and what they share."""
