"""One module per family of findings: its codes, and the rules that report them."""
