"""The actions of `trouter pipeline`, one module each; Spark is imported only when one of them runs."""
