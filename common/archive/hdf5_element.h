#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal {

// The type of a data set's elements, for the types that Keras writes through h5py: little-endian
// IEEE floats and whole numbers.
struct Hdf5Element {
  std::string dtype;  // empty: another type
  uint64_t size = 0;
};

// Decodes the bytes of a data type message.
Hdf5Element ReadHdf5Element(std::string_view data);

// Converts the value at `from` to float. Requires a dtype other than "", and other than "F32",
// which needs no conversion.
float Hdf5ToFloat(const std::string& dtype, const char* from);

}  // namespace shoal
