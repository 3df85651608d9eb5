#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"
#include "common/base/shape.h"

namespace shoal {

// What an HDF5 file holds, to be read from it: of the format that part which h5py writes for Keras
// (hdf5_file.cc has it). Everything but the values is read and checked at the beginning, in memory
// that the file's size bounds; what leads out of the file (links, external data), comes twice, is
// cut off, or says another size than it has, is refused with the byte where it stands. Immutable;
// as thread-safe as its source.
class Hdf5File {
 public:
  struct Dataset {
    std::string path;   // "layers/dense/vars/0"
    std::string dtype;  // "F32", as safetensors has it; empty: one that is not read
    Shape shape;
    uint64_t begin = 0;  // bytes from the start of the file
    uint64_t size = 0;   // bytes
    // Why its values cannot be read; empty: they can.
    std::string problem;
  };

  static absl::StatusOr<std::unique_ptr<Hdf5File>> Open(ByteSource source);

  const std::string& name() const { return source_.name; }
  // Sorted by path.
  const std::vector<Dataset>& datasets() const { return datasets_; }
  // The attribute "name" of the groups that have one: "layers/dense/vars" -> "predictions".
  const std::map<std::string, std::string>& names() const { return names_; }

  // The values from number `first` on, as float32.
  absl::Status ReadFloats(const Dataset& dataset, uint64_t first, std::span<float> out) const;

 private:
  friend class Hdf5Walk;
  explicit Hdf5File(ByteSource source) : source_(std::move(source)) {}

  const ByteSource source_;
  std::vector<Dataset> datasets_;
  std::map<std::string, std::string> names_;
};

}  // namespace shoal
