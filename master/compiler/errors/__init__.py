"""How evaluation ends early: errors of the language, jumps, and the place in a manifest that either comes from."""
