"""What asks a router and tells people: the management client, its connection options, and the views."""
