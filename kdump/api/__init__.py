"""What `import kdump` offers and no command has: open, decoded, and functions that take several paths."""
