"""Starting nodes on hosts. The node's own entry point is lean: it imports no configuration and no emulator."""
