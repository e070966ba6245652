"""Combines the faults of the embedded store with the package's operations. In each cell, a fault hits a request of
an operation."""
