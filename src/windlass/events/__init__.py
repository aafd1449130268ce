"""What has happened to jobs and nodes, told to listeners after it was committed."""
