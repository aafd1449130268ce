"""What keeps jobs from services that are down."""
