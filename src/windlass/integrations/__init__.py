"""What Windlass is connected to: targets of deliveries over HTTP and in Amazon SQS, and providers of dead letters."""
