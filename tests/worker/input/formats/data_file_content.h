#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/common/base/temporary_directory.h"

namespace shoal {

// Returns the bytes of `numbers`, each as a Number in the given byte order.
template <typename Number>
std::string Stored(const std::vector<double>& numbers, bool big_endian) {
  std::string bytes;
  for (const double value : numbers) {
    const Number number = static_cast<Number>(value);
    char raw[sizeof(Number)];
    std::memcpy(raw, &number, sizeof(Number));
    if (big_endian) std::reverse(raw, raw + sizeof(Number));
    bytes.append(raw, sizeof(Number));
  }
  return bytes;
}

inline std::string IdxHeader(uint8_t type, const std::vector<uint32_t>& extents) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(extent >> shift));
  }
  return bytes;
}

// Returns the header of an NPY file, padded as by NumPy.
inline std::string NpyHeader(int major, std::string dict) {
  const size_t begin = major == 1 ? 10 : 12;
  while ((begin + dict.size() + 1) % 64 != 0) dict.push_back(' ');
  dict.push_back('\n');
  std::string bytes = "\x93NUMPY";
  bytes.push_back(static_cast<char>(major));
  bytes.push_back('\0');
  for (size_t i = 0; i < begin - 8; ++i) bytes.push_back(static_cast<char>(dict.size() >> (8 * i)));
  return bytes + dict;
}

inline std::string NpyDict(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

inline std::string Gzip(const std::string& content) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A test with its own directory, removed at the end.
class DataFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_ / name; }
  std::string Write(const std::string& name, const std::string& content) const {
    // Removes the old file first: a file system that protects against lost replacements would wait
    // for the disk.
    std::filesystem::remove(Path(name));
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }

 private:
  const TemporaryDirectory directory_;
};

}  // namespace shoal
