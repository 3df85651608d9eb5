#include "common/compression/codec_table.h"

// Every codec in one line: its class, its name in a job, and whether it may encode pulled values.
// The file of its name defines MakeCLASS.
#define SHOAL_CODECS(CODEC)  \
  CODEC(Bf16, "bf16", true)  \
  CODEC(Int8, "int8", true)  \
  CODEC(E3m0, "e3m0", false) \
  CODEC(TopK, "top_k", false)

namespace shoal {

#define SHOAL_DECLARE_CODEC(CLASS, NAME, FOR_VALUES) \
  std::unique_ptr<const Codec> Make##CLASS(JsonObject&);
SHOAL_CODECS(SHOAL_DECLARE_CODEC)
#undef SHOAL_DECLARE_CODEC

namespace {

#define SHOAL_CODEC_LINE(CLASS, NAME, FOR_VALUES) {NAME, Make##CLASS, FOR_VALUES},
constexpr CodecType kCodecs[] = {SHOAL_CODECS(SHOAL_CODEC_LINE)};
#undef SHOAL_CODEC_LINE

}  // namespace

std::span<const CodecType> CodecTable() { return kCodecs; }

std::vector<std::string> CodecNames(Direction direction) {
  std::vector<std::string> names;
  for (const CodecType& type : kCodecs) {
    if (direction == Direction::kPush || type.for_values) names.emplace_back(type.name);
  }
  return names;
}

}  // namespace shoal
