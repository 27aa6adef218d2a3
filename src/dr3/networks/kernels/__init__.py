"""What is there for speed alone: products, blocks, convolutions as matmuls. Networks read the same without it."""
