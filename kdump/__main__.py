"""python -m kdump"""

from kdump.cli import main

if __name__ == "__main__":  # a worker of verify --jobs imports this, too
    main()
