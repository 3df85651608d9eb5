// The framing of records and the examples in them. Bytes seldom have the checksum that they would
// need, so they are framed here, too.

#include <cstring>

#include "common/base/crc32c.h"
#include "tests/fuzz/fuzz_target.h"
#include "worker/input/dataset/dataset.h"

namespace {

void Open(const uint8_t* data, size_t size) {
  const shoal::FuzzFile file(data, size);
  shoal::DataSource source;
  source.format = "tfrecord";
  source.paths = {file.path()};
  source.features = {{"", {"x"}}};
  source.labels = "y";
  const auto dataset = shoal::OpenDataset(source, {{.name = "x", .shape = {4, 4, 3}}});
  if (!dataset.ok()) return;
  float x[48], label;
  for (uint64_t i = 0; i < (*dataset)->size() && i < 10; ++i) {
    const shoal::FeatureSpan feature(x);
    (void)(*dataset)->Read(i, std::span(&feature, 1), std::span(&label, 1));
  }
}

void Append(const void* data, size_t size, std::string* out) {
  const uint32_t crc = shoal::Crc32c(0, data, size);
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8;
  out->append(static_cast<const char*>(data), size);
  out->append(reinterpret_cast<const char*>(&masked), sizeof(masked));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Open(data, size);
  std::string framed;
  const uint64_t length = size;
  Append(&length, sizeof(length), &framed);
  Append(data, size, &framed);
  Open(reinterpret_cast<const uint8_t*>(framed.data()), framed.size());
  return 0;
}
