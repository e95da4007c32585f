"""How somebody's code lives in a process of its own: who watches over it, and the line between the two."""
