"""Draws the folder of pictures that job.json trains on: five shapes, each in any colour, size and place. Needs nothing but Python.

    python3 examples/mobilenet_v2/draw_pictures.py [--folder pictures] [--training 40] [--test 10] [--size 224] [--seed 1]
"""
import argparse
import pathlib
import random
import struct
import zlib

SHAPES = {  # whether a point is inside; the shape reaches from -1 to 1
    "circle": lambda x, y: x * x + y * y < 1,
    "cross": lambda x, y: min(abs(x), abs(y)) < 0.3,
    "ring": lambda x, y: 0.4 < x * x + y * y < 1,
    "square": lambda x, y: max(abs(x), abs(y)) < 0.85,
    "triangle": lambda x, y: abs(x) < (1 + y) / 2,
}


def png(rows, size):
    """A PNG of 8-bit RGB: https://www.w3.org/TR/png-3/."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def draw(inside, size, choose):
    radius = size * choose.uniform(0.15, 0.4)
    left, top = (choose.uniform(radius, size - radius) for _ in range(2))
    ground, colour = ([choose.randrange(256) for _ in range(3)] for _ in range(2))
    if sum(abs(g - c) for g, c in zip(ground, colour)) < 150:  # hard to tell apart
        colour = [(g + 128) % 256 for g in ground]
    ground, colour = bytes(ground), bytes(colour)
    rows = []
    for row in range(size):
        y = (row - top) / radius
        if abs(y) >= 1:
            rows.append(ground * size)
        else:
            xs = ((column - left) / radius for column in range(size))
            rows.append(b"".join(colour if abs(x) < 1 and inside(x, y) else ground for x in xs))
    return png(rows, size)


def main():
    parser = argparse.ArgumentParser(description="Draws a folder of pictures in five classes.")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "pictures")
    parser.add_argument("--training", type=int, default=40, help="pictures of each class")
    parser.add_argument("--test", type=int, default=10, help="pictures of each class")
    parser.add_argument("--size", type=int, default=224, help="height and width")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    choose = random.Random(given.seed)
    for part, count in (("training", given.training), ("test", given.test)):
        for name, inside in SHAPES.items():
            folder = given.folder / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                (folder / f"{i:04}.png").write_bytes(draw(inside, given.size, choose))
    print(given.folder)


if __name__ == "__main__":
    main()
