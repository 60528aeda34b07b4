"""The plugins that come with trouter, one behaviour each; they are loaded like anybody's, by entry point."""
