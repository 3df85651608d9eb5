#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

// What h5py calls the numbers that Keras has it write: IEEE floats and whole numbers,
// little-endian.
struct Hdf5Element {
  std::string dtype;  // empty: another one
  uint64_t size = 0;
};

// Of the bytes of a data type message.
Hdf5Element ReadHdf5Element(std::string_view data);

// The value at `from`, of a dtype that is not empty nor "F32", which needs no conversion.
float Hdf5ToFloat(const std::string& dtype, const char* from);

}  // namespace shoal
