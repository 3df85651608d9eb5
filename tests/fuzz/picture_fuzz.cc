// JPEG and PNG: the libraries are not ours, but how they are held is.

#include "tests/fuzz/fuzz_target.h"
#include "worker/input/pictures/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  constexpr int kChannels[] = {1, 3, 4};
  shoal::DecodeOptions options{.channels = kChannels[data[0] % 3]};
  if (data[0] & 128) options.min_height = options.min_width = 8;
  shoal::Picture picture;
  (void)shoal::DecodePicture(std::span(data + 1, size - 1), options, &picture);
  return 0;
}
