"""The face for coding agents: commands as tools of the Model Context Protocol, and one page to work by."""
