"""Circuit breakers, which keep jobs away from services that are down."""
