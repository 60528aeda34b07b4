"""The plugins that come with trouter, one behaviour each; the router loads them by entry point like any plugin."""
