"""What every front shares: how an error is told to the other side."""
