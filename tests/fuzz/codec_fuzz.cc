// A chunk as a peer sends it: the codec and the number of values by the first three bytes, which
// both ends know from the job, then the encoding.

#include <cstring>
#include <vector>

#include "common/compression/codec.h"
#include "common/compression/codec_table.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::string> names = shoal::CodecNames(shoal::Direction::kPush);
  if (size < 3) return 0;
  const auto codec = *shoal::MakeCodec(names[data[0] % names.size()], shoal::Direction::kPush);
  std::vector<float> values(data[1] | (data[2] << 8));
  const std::span<const char> bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const absl::Status decoded = codec->Decode(bytes, values);
  if (!decoded.ok() && decoded.message().empty()) std::abort();
  if (!decoded.ok()) return 0;
  // What was taken can be sent on, in as many bytes.
  if (codec->EncodedBytes(values.size()) != bytes.size()) std::abort();
  std::vector<char> again(bytes.size());
  codec->Encode(values, again.data());
  if (!codec->Decode(again, values).ok()) std::abort();
  return 0;
}
