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

// Decoders reject larger pictures, and those that need more than ReadingMemory::kMaxDecoding to
// decode: 1 to 4 bytes per pixel, and 2 to 6 more for a progressive JPEG.
inline constexpr int64_t kMaxPixels = 64 << 20;

// A decoded picture: rows from the top, channels next to each other (RGB, RGBA, or grey alone).
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  MemoryBudget::Piece memory;  // for decoding; returned after the pixels are freed
  std::vector<uint8_t> pixels;
};

// Options for decoding.
struct DecodeOptions {
  int channels = 3;  // 1, 3 or 4
  // A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size if the result is at least this large; 0:
  // at its own size.
  int64_t min_height = 0;
  int64_t min_width = 0;
  // The budget for the memory of large pictures; null: no budget. Must outlive the picture.
  MemoryBudget* memory = nullptr;
};

// Decodes a JPEG or PNG, recognized by its content, into `out`, reusing its memory. The pixels are
// those of tf.io.decode_png, or of tf.io.decode_jpeg with dct_method="INTEGER_ACCURATE". Errors are
// kDataLoss, or kUnimplemented for a kind of picture that Shoal does not read. They name the byte,
// not the file. Thread-safe.
absl::Status DecodePicture(std::span<const uint8_t> file, const DecodeOptions& options,
                           Picture* out);

bool IsJpeg(std::span<const uint8_t> file);
bool IsPng(std::span<const uint8_t> file);

// Decoders of one format, for DecodePicture.
absl::Status DecodeJpeg(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);
absl::Status DecodePng(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);

// The extents in a picture's header, and the memory that its decoder needs.
struct PictureNeeds {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  uint64_t extra_bytes = 0;  // memory besides the decoded pixels
};
// Gives `out` its extents and memory; may wait for memory. Returns kDataLoss if the picture exceeds
// a max, naming the max and the size, and another error if there is no memory.
absl::Status MakeRoomForPicture(const PictureNeeds& needs, MemoryBudget* memory, Picture* out);
// Returns kDataLoss for a header with more pixels than the file can hold. The error has the sizes.
absl::Status CannotHold(int64_t height, int64_t width, uint64_t file_bytes);

}  // namespace shoal
