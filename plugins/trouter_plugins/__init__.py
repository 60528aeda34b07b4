"""The plugins that come with trouter, one behaviour each; like other plugins they are loaded by entry point."""
