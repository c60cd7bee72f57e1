"""What accuracy to expect before anything is spent, from public facts alone."""
