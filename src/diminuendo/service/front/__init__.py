"""Front ends: they choose by menus, sign tokens and take answers. They load nothing compiled, keep nothing private."""
