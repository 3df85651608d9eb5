"""Pictures as a bundle has them: with their columns for rows, as Fashion-MNIST's are compressed by 5 % better."""
import struct

SUFFIX = ".turned"
HEADER_BYTES = 16


def turn(idx):
    """An IDX file of bytes in three dimensions with rows and columns of each picture exchanged, which is undone by the same."""
    rows, columns = struct.unpack(">II", idx[8:HEADER_BYTES])
    turned = bytearray(idx)
    turned[8:HEADER_BYTES] = struct.pack(">II", columns, rows)
    for row in range(rows):
        for column in range(columns):
            turned[HEADER_BYTES + column * rows + row::rows * columns] = idx[HEADER_BYTES + row * columns + column::rows * columns]
    return bytes(turned)
