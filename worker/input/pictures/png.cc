// PNG by libpng, as in TensorFlow: 16 bits lose the lower 8. Grey from colour has the weights kRed
// and kGreen, in linear light if the file has a gamma; other steps ignore it.

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/input/pictures/picture.h"

namespace shoal {
namespace {

// Max inflated bytes of a text or profile.
constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;
constexpr png_uint_32 kMaxChunks = 1000;
// Max ratio of deflate.
constexpr int64_t kMaxInflation = 1032;
// The weights in grey, from ITU-R BT.601; blue has the rest.
constexpr double kRed = 0.299;
constexpr double kGreen = 0.587;

// libpng leaves an error by longjmp. Nothing between setjmp and the library may therefore have a
// destructor.
struct PngDecoder {
  std::span<const uint8_t> file;
  size_t position = 0;
  std::jmp_buf failed;
  char message[128] = {};
  bool too_short = false;
};

void Fail(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, sizeof(decoder->message), "%s", message);
  std::longjmp(decoder->failed, 1);
}

// A warning means damage if the file has more pixels than its header says.
void Warn(png_structp png, png_const_charp message) {
  if (std::strstr(message, "Too much image data") != nullptr) Fail(png, message);
}

void Read(png_structp png, png_bytep out, size_t size) {
  auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (size > decoder->file.size() - decoder->position) {
    decoder->too_short = true;
    std::longjmp(decoder->failed, 1);
  }
  std::memcpy(out, decoder->file.data() + decoder->position, size);
  decoder->position += size;
}

// As CommonInitDecode in tensorflow/core/lib/png/png_io.cc.
void Transform(png_structp png, png_infop info, int channels) {
  const int type = png_get_color_type(png, info);
  const int bits = png_get_bit_depth(png, info);
  const bool has_transparency = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0;
  const bool is_gray = (type & PNG_COLOR_MASK_COLOR) == 0;
  if (channels == 4) {
    if (has_transparency) {
      png_set_tRNS_to_alpha(png);
    } else if (!has_alpha) {
      png_set_add_alpha(png, (1 << bits) - 1, PNG_FILLER_AFTER);
    }
  } else if (has_alpha || has_transparency) {
    png_set_strip_alpha(png);
  }
  if (bits > 8) png_set_strip_16(png);
  png_set_packing(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (is_gray && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (channels == 1 && !is_gray) png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, kRed, kGreen);
  if (channels > 1 && is_gray) png_set_gray_to_rgb(png);
}

// The part that may longjmp. `*status`: an error from before decoding.
bool Decode(const DecodeOptions& options, png_structp png, png_infop info, PngDecoder* decoder,
            Picture* out, absl::Status* status) {
  if (setjmp(decoder->failed) != 0) return false;
  png_set_read_fn(png, decoder, Read);
  png_set_user_limits(png, 1 << 24, 1 << 24);  // high, so that Shoal reports the size
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  png_set_chunk_cache_max(png, kMaxChunks);
  png_read_info(png, info);
  const int64_t height = png_get_image_height(png, info);
  const int64_t width = png_get_image_width(png, info);
  if (height * width <= kMaxPixels) {
    // Detects a false header before allocating memory for it.
    const auto stored = static_cast<int64_t>(png_get_rowbytes(png, info)) * height;
    if (stored / kMaxInflation > static_cast<int64_t>(decoder->file.size())) {
      *status = CannotHold(height, width, decoder->file.size());
      return true;
    }
  }
  // Besides the pixels, two rows with up to 8 bytes per pixel.
  *status = MakeRoomForPicture({.height = height,
                                .width = width,
                                .channels = options.channels,
                                .extra_bytes = 2 * 8 * static_cast<uint64_t>(width)},
                               options.memory, out);
  if (!status->ok()) return true;
  Transform(png, info, options.channels);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t stride = static_cast<size_t>(out->width * out->channels);
  if (png_get_rowbytes(png, info) != stride) png_error(png, "unexpected kind of pixels");
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < out->height; ++y) {
      png_read_row(png, out->pixels.data() + y * stride, nullptr);
    }
  }
  png_read_end(png, nullptr);
  return true;
}

}  // namespace

absl::Status DecodePng(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out) {
  PngDecoder decoder = {.file = file};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, Fail, Warn);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("no memory to decode a PNG");
  }
  absl::Status status;
  const bool decoded = Decode(options, png, info, &decoder, out, &status);
  png_destroy_read_struct(&png, &info, nullptr);
  if (decoded) return status;
  if (decoder.too_short) {
    return absl::DataLossError(
        absl::StrCat("ends early, at byte ", file.size(), ", inside the PNG"));
  }
  return absl::DataLossError(absl::StrCat("damaged PNG before byte ", decoder.position, ": ",
                                          std::string(decoder.message)));
}

}  // namespace shoal
