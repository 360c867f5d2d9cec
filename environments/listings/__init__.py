"""What an environment holds, for tools that ask: classes, defined types, tasks, plans."""
