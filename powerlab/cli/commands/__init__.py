"""The commands, one module or package each; :data:`powerlab.cli.COMMANDS` lists them."""
