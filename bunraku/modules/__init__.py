"""Modules as `puppet module` sees them: releases on a Forge, archives, folders of a modulepath, Puppetfiles."""
