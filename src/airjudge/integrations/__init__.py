"""Our judge inside the tools of others: keep the tool, change the judge. Each module loads its library alone."""
