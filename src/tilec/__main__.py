"""`python -m tilec` is `tilec`."""

from tilec.cli import main

main()
