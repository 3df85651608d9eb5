#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal {

// Larger pictures are refused: what is decoded is in memory, up to 4 bytes a pixel, and for a
// progressive JPEG 6 more.
inline constexpr int64_t kMostPixels = 64 << 20;

// A decoded picture: rows from the top, channels next to each other (RGB, RGBA, or grey alone).
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;
};

// How to decode.
struct DecodeOptions {
  int channels = 3;  // 1, 3 or 4
  // A JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, if it is no smaller than this; 0: at its
  // own size.
  int64_t least_height = 0;
  int64_t least_width = 0;
};

// Decodes a JPEG or PNG, told apart by content, into `out`, whose memory is used again; with the
// same result as tf.io.decode_image. Errors are kDataLoss, or kUnimplemented for what is a picture
// that Shoal does not read; they say at which byte, not of which file. Thread-safe.
absl::Status DecodePicture(std::span<const uint8_t> file, const DecodeOptions& options,
                           Picture* out);

bool IsJpeg(std::span<const uint8_t> file);
bool IsPng(std::span<const uint8_t> file);

// Those of one format, for DecodePicture.
absl::Status DecodeJpeg(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);
absl::Status DecodePng(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out);

// Gives `out` its extents and memory; kDataLoss above kMostPixels, by name and size, and where
// there is no memory.
absl::Status MakeRoomForPicture(int64_t height, int64_t width, int channels, Picture* out);

}  // namespace shoal
