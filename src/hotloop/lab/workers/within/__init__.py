"""What is put before the path of a program that is profiled."""
