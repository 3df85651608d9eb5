#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/files/reading_memory.h"

namespace shoal {

// Larger pictures are rejected, and those that take more than ReadingMemory::kMaxDecoding to
// decode: 1 to 4 bytes a pixel, and for a progressive JPEG 2 to 6 more.
inline constexpr int64_t kMaxPixels = 64 << 20;

// A decoded picture: rows from the top, channels next to each other (RGB, RGBA, or grey alone).
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  MemoryBudget::Piece memory;  // for decoding it; given back after the pixels
  std::vector<uint8_t> pixels;
};

// How to decode.
struct DecodeOptions {
  int channels = 3;  // 1, 3 or 4
  // A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, if it is no smaller than this; 0: at its
  // own size.
  int64_t least_height = 0;
  int64_t least_width = 0;
  // What a large picture takes its memory from; null: nobody counts. Outlives the picture.
  MemoryBudget* memory = nullptr;
};

// Decodes a JPEG or PNG, told apart by content, into `out`, whose memory is used again. The pixels
// are those of tf.io.decode_png, or of tf.io.decode_jpeg with dct_method="INTEGER_ACCURATE". Errors
// are kDataLoss, or kUnimplemented for what is a picture that Shoal does not read; they say at
// which byte, not of which file. Thread-safe.
absl::Status DecodePicture(std::span<const uint8_t> file, const DecodeOptions& options,
                           Picture* out);

bool IsJpeg(std::span<const uint8_t> file);
bool IsPng(std::span<const uint8_t> file);

// Those of one format, for DecodePicture.
absl::Status DecodeJpeg(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);
absl::Status DecodePng(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);

// What a decoder finds in a header.
struct PictureNeeds {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  uint64_t extra_bytes = 0;  // of memory, beside the decoded pixels
};
// Gives `out` its extents and memory, for which it may wait; kDataLoss for more than a picture may
// have, by name and size, and an error where there is no memory.
absl::Status MakeRoomForPicture(const PictureNeeds& needs, MemoryBudget* memory, Picture* out);
// kDataLoss, by the sizes, for a header that says more pixels than the file's bytes can hold.
absl::Status CannotHold(int64_t height, int64_t width, uint64_t file_bytes);

}  // namespace shoal
