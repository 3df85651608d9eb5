"""Writes pictures.json: small pictures of each kind, and the bytes that TensorFlow makes of them for 1, 3 and 4 channels.

    python make_pictures.py > pictures.json

with TensorFlow 2.15.1 and Pillow. Files and pixels are hexadecimal; pixels are null where TensorFlow rejects the picture.
"""
import io
import json
import random
import struct
import sys
import zlib

import numpy
import PIL.Image
import tensorflow as tf

HEIGHT, WIDTH = 4, 5
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
SAMPLES = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
# Of each pass of an interlaced PNG: first row and column, and the steps between them.
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]

rng = random.Random(7)


def noise(samples, bits, height=HEIGHT, width=WIDTH):
    """Rows of pixels, each a list of samples; the first are red, green, blue where there are as many."""
    most = (1 << bits) - 1
    rows = [[[rng.randint(0, most) for _ in range(samples)] for _ in range(width)] for _ in range(height)]
    if samples >= 3:
        for i in range(3):
            rows[0][i][:3] = [most * (i == c) for c in range(3)]
    return rows


def packed(row, bits):
    values = [sample for pixel in row for sample in pixel]
    if bits == 16:
        return struct.pack(f">{len(values)}H", *values)
    text = "".join(f"{value:0{bits}b}" for value in values)
    return bytes(int(text[i:i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(color, bits, interlaced=False, palette=None, transparency=None, chunks=b""):
    """`chunks`: those between the header and the palette."""
    count = 1 << bits if palette is None else len(palette)
    rows = noise(SAMPLES[color], bits)
    if palette is not None:
        rows = [[[i % count] for i in range(y * WIDTH, (y + 1) * WIDTH)] for y in range(HEIGHT)]
    if transparency is not None and color != PALETTE:
        transparency = struct.pack(f">{SAMPLES[color]}H", *rows[1][1])
    passes = [rows]
    if interlaced:
        passes = [[row[left::across] for row in rows[top::down]] for top, left, down, across in ADAM7]
    data = b"".join(b"\0" + packed(row, bits) for each in passes for row in each if row)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, color, 0, 0, int(interlaced)))
    file += chunks
    if palette is not None:
        file += chunk(b"PLTE", bytes(sample for entry in palette for sample in entry))
    if transparency is not None:
        file += chunk(b"tRNS", bytes(transparency))
    return file + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def jpeg(mode, **options):
    samples = len(mode) if mode != "L" else 1
    image = PIL.Image.fromarray(numpy.array(noise(samples, 8, 9, 11), numpy.uint8).squeeze(), mode)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90, **options)
    return file.getvalue()


def without_adobe_marker(file):
    at = file.index(b"\xff\xee")
    return file[:at] + file[at + 2 + struct.unpack(">H", file[at + 2:at + 4])[0]:]


def with_adobe_transform(file, transform):
    at = file.index(b"Adobe") + 11
    return file[:at] + bytes([transform]) + file[at + 1:]


GAMMA = chunk(b"gAMA", struct.pack(">I", 45455))
LINEAR = chunk(b"gAMA", struct.pack(">I", 100000))
SRGB = chunk(b"sRGB", b"\0")
CHROMATICITIES = chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
COLORS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (10, 200, 90), (201, 3, 77)]
cmyk = jpeg("CMYK")
files = {f"png_gray_{bits}": png(GRAY, bits) for bits in (1, 2, 4, 8, 16)}
files |= {f"png_gray_transparent_{bits}": png(GRAY, bits, transparency=True) for bits in (2, 8, 16)}
files |= {f"png_gray_alpha_{bits}": png(GRAY_ALPHA, bits) for bits in (8, 16)}
files |= {f"png_rgb_{bits}": png(RGB, bits) for bits in (8, 16)}
files |= {f"png_rgb_transparent_{bits}": png(RGB, bits, transparency=True) for bits in (8, 16)}
files |= {f"png_rgba_{bits}": png(RGBA, bits) for bits in (8, 16)}
files |= {f"png_palette_{bits}": png(PALETTE, bits, palette=COLORS[:1 << bits]) for bits in (1, 2, 4, 8)}
files |= {f"png_palette_transparent_{bits}": png(PALETTE, bits, palette=COLORS[:1 << bits], transparency=[0, 77]) for bits in (1, 2, 4, 8)}
files |= {
    "png_palette_of_grays": png(PALETTE, 8, palette=[(9, 9, 9), (200, 200, 200)]),
    "png_gray_interlaced": png(GRAY, 2, interlaced=True),
    "png_rgb_interlaced": png(RGB, 8, interlaced=True),
    "png_rgba_16_interlaced": png(RGBA, 16, interlaced=True),
    "png_palette_interlaced": png(PALETTE, 4, interlaced=True, palette=COLORS),
    "png_gray_gamma": png(GRAY, 8, chunks=GAMMA),
    "png_rgb_gamma": png(RGB, 8, chunks=GAMMA),
    "png_rgb_linear": png(RGB, 8, chunks=LINEAR),
    "png_rgb_16_gamma": png(RGB, 16, chunks=GAMMA),
    "png_rgba_gamma": png(RGBA, 8, chunks=GAMMA),
    "png_palette_gamma": png(PALETTE, 4, palette=COLORS, chunks=GAMMA),
    "png_rgb_srgb": png(RGB, 8, chunks=SRGB),
    "png_rgb_chromaticities": png(RGB, 8, chunks=CHROMATICITIES),
    "png_rgb_of_photo_editor": png(RGB, 8, chunks=SRGB + GAMMA + CHROMATICITIES),
    "jpeg_gray": jpeg("L"),
    "jpeg_ycbcr_444": jpeg("RGB", subsampling="4:4:4"),
    "jpeg_ycbcr_422": jpeg("RGB", subsampling="4:2:2"),
    "jpeg_ycbcr_420": jpeg("RGB", subsampling="4:2:0"),
    "jpeg_progressive": jpeg("RGB", progressive=True),
    "jpeg_rgb": jpeg("RGB", keep_rgb=True),
    "jpeg_cmyk": without_adobe_marker(cmyk),
    "jpeg_cmyk_inverted": cmyk,
    "jpeg_ycck": with_adobe_transform(cmyk, 2),
}


def decoded(name, file, channels):
    try:
        if name.startswith("png"):
            image = tf.io.decode_png(file, channels=channels)
        else:
            image = tf.io.decode_jpeg(file, channels=channels, dct_method="INTEGER_ACCURATE")
    except tf.errors.InvalidArgumentError:
        return None
    return image.numpy()


pictures = []
for name, file in files.items():
    images = {channels: decoded(name, file, channels) for channels in (1, 3, 4)}
    height, width = next(image for image in images.values() if image is not None).shape[:2]
    pixels = {str(channels): None if image is None else image.tobytes().hex() for channels, image in images.items()}
    pictures.append({"name": name, "height": height, "width": width, "file": file.hex(), "pixels": pixels})
lines = ",\n".join(json.dumps(picture) for picture in pictures)
sys.stdout.write(f'{{"tensorflow": "{tf.__version__}", "pictures": [\n{lines}\n]}}\n')
