#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors.h"

namespace shoal {

// The tensors, as they lie in the file, of the JSON at the start of a safetensors file. Checks the
// whole of a header whose data begins at byte `data_begin` of a file of `file_size` bytes. Errors
// are kInvalidArgument and say which rule is broken; the caller adds the file's name. Takes memory
// in proportion to the text, whatever it holds.
absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(const std::string& json,
                                                                uint64_t data_begin,
                                                                uint64_t file_size);

// Bytes of one element; 0 for a dtype that is not known.
uint64_t SafetensorsElementSize(const std::string& dtype);

}  // namespace shoal
