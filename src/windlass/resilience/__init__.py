"""Circuit breakers: what keeps jobs away from services that are down."""
