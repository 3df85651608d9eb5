#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// An HDF5 file to be written: all of it but the values is fixed from paths and shapes.
struct Hdf5Layout {
  std::string header;  // the first bytes of the file: superblock, groups, headers of the data sets
  std::vector<uint64_t> begins;  // of the values, bytes from the start of the file; as given
  uint64_t file_size = 0;
};

// Lays out float32 data sets, in the given order, with the groups that their paths name
// ("layers/dense/vars/0"). Paths must be distinct, none the beginning of another; extents known.
Hdf5Layout LayOutHdf5(const std::vector<std::pair<std::string, Shape>>& datasets);

}  // namespace shoal
