"""Compiled loops of brute force.

Read `tiles.py` first: tiles that serve every built-in kernel, stage by stage. The others are faster special cases:
`fused_means.py` for weighted means, `fused_local_linear.py` for local linear fits and gradients in one to three
columns, and `matrix_products.py` for many columns by matrix products.
"""
