"""A slate for each type of users: what is believed of the values of columns, and chains for all types at once."""
