"""The command line. What is heavy is imported inside the commands, so that help comes at once."""
