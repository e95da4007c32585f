"""The arithmetic of learning over whole arrays: what is to be done, by torch and natively."""
