"""The commands of PuppetDB's API: how they are submitted, what they say, and who carries them out."""
