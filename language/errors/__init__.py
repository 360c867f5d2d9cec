"""How an evaluation ends early: errors of the language, jumps, and the place in a manifest where either was raised."""
