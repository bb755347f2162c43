"""Tables of rows, who and what, as people: which column is what, which rows count, and what a round is."""
