// The frames of HTTP/2 that a client sends, whole and byte by byte.

#include "common/rpc/admission/frame_scanner.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shoal::FrameScanner whole, pieces;
  const bool accepted = whole.Accept(data, size);
  bool pieces_accepted = true;
  for (size_t i = 0; i < size; ++i) pieces_accepted = pieces.Accept(data + i, 1);
  if (size > 0 && accepted != pieces_accepted) std::abort();
  return 0;
}
