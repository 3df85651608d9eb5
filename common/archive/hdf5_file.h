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

// A reader of HDF5 files. It supports the part of the format that h5py writes for Keras (see
// hdf5_file.cc). Open() reads and checks everything but the values; the file's size bounds its
// memory. It rejects links out of the file, external data, duplicate or truncated objects, and
// wrong sizes. Such errors name the byte. Immutable; as thread-safe as its source.
class Hdf5File {
 public:
  struct Dataset {
    std::string path;   // "layers/dense/vars/0"
    std::string dtype;  // "F32", as in safetensors; empty: not supported
    Shape shape;
    uint64_t begin = 0;  // bytes from the start of the file
    uint64_t size = 0;   // bytes
    // Why its values cannot be read; empty if they can.
    std::string problem;
  };

  static absl::StatusOr<std::unique_ptr<Hdf5File>> Open(ByteSource source);

  const std::string& name() const { return source_.name; }
  // Sorted by path.
  const std::vector<Dataset>& datasets() const { return datasets_; }
  // The attribute "name", by path of each group that has one: "layers/dense/vars" -> "predictions".
  const std::map<std::string, std::string>& names() const { return names_; }

  // Reads the values from index `first` on, as float32.
  absl::Status ReadFloats(const Dataset& dataset, uint64_t first, std::span<float> out) const;

 private:
  friend class Hdf5Walk;
  explicit Hdf5File(ByteSource source) : source_(std::move(source)) {}

  const ByteSource source_;
  std::vector<Dataset> datasets_;
  std::map<std::string, std::string> names_;
};

}  // namespace shoal
