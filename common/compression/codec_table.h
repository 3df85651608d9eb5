#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/compression/codec.h"
#include "common/json/json_object.h"

namespace shoal {

// A line of the codec table.
struct CodecType {
  const char* name;
  // Reads the options next to "name".
  std::unique_ptr<const Codec> (*make)(JsonObject& options);
  // Whether pulled values may use it, too: they must not lose any value.
  bool for_values;
};

// All codecs.
std::span<const CodecType> CodecTable();

// The names of the codecs for this direction, in the order of the table.
std::vector<std::string> CodecNames(Direction direction);

}  // namespace shoal
