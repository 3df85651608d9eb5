#include "common/monitoring/http_request.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = shoal::EndOfHead(text);
  if (end != std::string_view::npos && end > size) std::abort();
  (void)shoal::ParseHttpRequest(text.substr(0, end));
  return 0;
}
