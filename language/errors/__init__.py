"""The ways in which an evaluation ends early: errors of the language, jumps, and the place in a manifest that raised them."""
