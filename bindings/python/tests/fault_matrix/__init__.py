"""The faults of the embedded store, crossed with what the package can do: each cell is a fault that meets a request of an operation."""
