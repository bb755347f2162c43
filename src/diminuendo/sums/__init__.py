"""Private running sums: what people contribute is added up, and published with noise now and then."""
