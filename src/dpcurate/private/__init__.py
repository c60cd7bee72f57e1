"""The session: the only folder that sees rows. The one way out is `Curator.ask` and `Curator.open`."""
