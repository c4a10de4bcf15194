"""Drop-in names: change an import, keep the script."""
