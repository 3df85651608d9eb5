#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/compression/codec.h"
#include "common/json/json_object.h"

namespace shoal {

struct CodecType {
  const char* name;
  // Reads the options that stand beside "name".
  std::unique_ptr<const Codec> (*make)(JsonObject& options);
  // What pulls it, too: of values no part may be missing.
  bool for_values;
};

// All codecs.
std::span<const CodecType> CodecTable();

// Their names, in the order of the table; of those that are good for this direction.
std::vector<std::string> CodecNames(Direction direction);

}  // namespace shoal
