#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// The layout of a new HDF5 file. Paths and shapes determine everything but the values.
struct Hdf5Layout {
  std::string header;  // the first bytes of the file: superblock, groups, headers of the data sets
  std::vector<uint64_t> begins;  // offsets of the values in the file, in bytes; in the given order
  uint64_t file_size = 0;
};

// Lays out float32 data sets, in the given order, with the groups in their paths
// ("layers/dense/vars/0"). Requires distinct paths, none of which is a parent of another, and known
// extents.
Hdf5Layout LayOutHdf5(const std::vector<std::pair<std::string, Shape>>& datasets);

}  // namespace shoal
