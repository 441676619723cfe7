"""What is wrong with a program, read from its IR: one check a file, which changes nothing."""
