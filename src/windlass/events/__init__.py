"""Events about jobs, nodes and circuits, published to subscribers in order, after the commit that caused them."""
