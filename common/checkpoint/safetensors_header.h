#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"

namespace shoal {

// Returns the tensors in the JSON at the start of a safetensors file, in the order of their places.
// Checks the whole header. The data begin at byte `data_begin` of a file of `file_size` bytes.
// Errors are kInvalidArgument and name the broken rule; the caller adds the file's name. Uses
// memory in proportion to the text, for any content.
absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(const std::string& json,
                                                                uint64_t data_begin,
                                                                uint64_t file_size);

// Returns the bytes of one element; 0 for an unknown dtype.
uint64_t SafetensorsElementSize(const std::string& dtype);

}  // namespace shoal
