"""A query attends to keys and gets a weighted mean of their values. Move the query and run again."""

from kernpool import pool, pooling_weights

keys = ["red cup", "newspaper", "notes", "book"]
places = [1.0, 2.0, 3.0, 4.0]
values = [2.0, 4.0, 3.0, 1.0]
query = 2.2

weights = pooling_weights([query], places, bandwidth=0.6)[0]
for key, weight in zip(keys, weights, strict=True):
    print(f"{key:10} {weight:.3f} {'#' * round(40 * weight)}")
print("pooled value", pool([query], places, values, bandwidth=0.6)[0].round(3))
