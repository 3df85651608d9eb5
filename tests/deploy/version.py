"""The version of Shoal, as CMakeLists.txt has it."""
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"^project\(shoal VERSION (\S+) ", (SOURCE / "CMakeLists.txt").read_text(), re.M).group(1)
