// JPEG by libjpeg-turbo, with its defaults: smooth upsampling and the slow integer transform, which
// TensorFlow calls INTEGER_ACCURATE. TensorFlow's default is INTEGER_FAST, a few levels away.

#include <csetjmp>
#include <cstdio>
// These need the two above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/input/pictures/picture.h"

namespace shoal {
namespace {

// Each scan of a progressive JPEG covers the whole picture. Ordinary files have about ten.
constexpr int kMaxScans = 100;

// libjpeg leaves an error by longjmp. Nothing between setjmp and the library may therefore have a
// destructor.
struct JpegDecoder {
  jpeg_decompress_struct info;  // first: callbacks get its address
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf failed;
  char message[JMSG_LENGTH_MAX];
  bool too_short;
};

JpegDecoder* DecoderOf(j_common_ptr info) { return reinterpret_cast<JpegDecoder*>(info); }

void Fail(j_common_ptr info) {
  JpegDecoder* decoder = DecoderOf(info);
  if (!decoder->too_short) info->err->format_message(info, decoder->message);
  std::longjmp(decoder->failed, 1);
}

// A warning means damage if libjpeg invented pixels.
void Warn(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_JPEG_EOF:
      Fail(info);
  }
}

boolean EndOfFile(j_decompress_ptr info) {
  JpegDecoder* decoder = DecoderOf(reinterpret_cast<j_common_ptr>(info));
  decoder->too_short = true;
  Fail(reinterpret_cast<j_common_ptr>(info));
  return FALSE;
}

void Skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) {
    info->src->next_input_byte += info->src->bytes_in_buffer;
    info->src->bytes_in_buffer = 0;
    EndOfFile(info);
  }
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}

void Progress(j_common_ptr info) {
  JpegDecoder* decoder = DecoderOf(info);
  if (decoder->info.input_scan_number <= kMaxScans) return;
  std::snprintf(decoder->message, sizeof(decoder->message), "more than %d scans", kMaxScans);
  std::longjmp(decoder->failed, 1);
}

void Open(std::span<const uint8_t> file, JpegDecoder* decoder) {
  decoder->info.err = jpeg_std_error(&decoder->errors);
  decoder->errors.error_exit = Fail;
  decoder->errors.emit_message = Warn;
  decoder->too_short = false;
  decoder->message[0] = '\0';
  decoder->source = {.next_input_byte = file.data(),
                     .bytes_in_buffer = file.size(),
                     .init_source = [](j_decompress_ptr) {},
                     .fill_input_buffer = EndOfFile,
                     .skip_input_data = Skip,
                     .resync_to_restart = jpeg_resync_to_restart,
                     .term_source = [](j_decompress_ptr) {}};
  decoder->progress = {};
  decoder->progress.progress_monitor = Progress;
}

// The number of 8 x 8 blocks, over all components.
int64_t BlocksOf(const jpeg_decompress_struct& info) {
  int64_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i) {
    const jpeg_component_info& component = info.comp_info[i];
    blocks += int64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  return blocks;
}

// Returns libjpeg's memory: some rows per component, and all coefficients if the picture has
// several scans.
uint64_t MemoryOfDecoder(jpeg_decompress_struct* info, int64_t blocks) {
  constexpr uint64_t kBytesPerColumn = 64;
  uint64_t bytes = kBytesPerColumn * info->num_components * info->image_width;
  if (jpeg_has_multiple_scans(info) != FALSE)
    bytes += static_cast<uint64_t>(blocks) * DCTSIZE2 * sizeof(JCOEF);
  return bytes;
}

// Chooses the scale 1, 1/2, 1/4 or 1/8, the smallest allowed.
void ChooseScale(const DecodeOptions& options, jpeg_decompress_struct* info) {
  info->scale_num = info->scale_denom = 1;
  if (options.min_height <= 0 || options.min_width <= 0) return;
  for (unsigned denominator = 2; denominator <= 8; denominator *= 2) {
    if ((info->image_height + denominator - 1) / denominator < options.min_height ||
        (info->image_width + denominator - 1) / denominator < options.min_width) {
      return;
    }
    info->scale_denom = denominator;
  }
}

// Converts a row from CMYK, because libjpeg cannot convert it to RGB. `cmyk` has 4 bytes per pixel,
// `out` has `channels`. Adobe writes inverted values.
void RowFromCmyk(const uint8_t* cmyk, int64_t width, int channels, bool inverted, uint8_t* out) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, out += channels) {
    const int key = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int c = 0; c < 3; ++c) {
      out[c] = static_cast<uint8_t>(key * (inverted ? cmyk[c] : 255 - cmyk[c]) / 255);
    }
    if (channels == 4) out[3] = 255;
  }
}

// The part that may longjmp. `file_bytes`: the size of the file. `row` is for CMYK. `*status`: an
// error from before decoding.
bool Decode(uint64_t file_bytes, const DecodeOptions& options, JpegDecoder* decoder, Picture* out,
            std::vector<uint8_t>* row, absl::Status* status) {
  jpeg_decompress_struct* info = &decoder->info;
  if (setjmp(decoder->failed) != 0) return false;
  jpeg_create_decompress(info);
  info->src = &decoder->source;
  info->progress = &decoder->progress;
  jpeg_read_header(info, TRUE);
  // Checks the unscaled size: the memory of a progressive JPEG does not shrink with the scale.
  if (int64_t{info->image_height} * info->image_width > kMaxPixels) {
    *status = MakeRoomForPicture({.height = info->image_height, .width = info->image_width},
                                 options.memory, out);
    return true;
  }
  // Huffman coding takes at least one bit per block; arithmetic coding has no such bound.
  const int64_t blocks = BlocksOf(*info);
  if (!info->arith_code && static_cast<uint64_t>(blocks) / 8 > file_bytes) {
    *status = CannotHold(info->image_height, info->image_width, file_bytes);
    return true;
  }
  const bool cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  if (cmyk && options.channels == 1) {
    *status = absl::UnimplementedError(
        "is in CMYK, which Shoal does not read as grayscale; convert the file to grayscale or RGB");
    return true;
  }
  info->out_color_space = cmyk                    ? JCS_CMYK
                          : options.channels == 1 ? JCS_GRAYSCALE
                          : options.channels == 3 ? JCS_RGB
                                                  : JCS_EXT_RGBA;
  ChooseScale(options, info);
  jpeg_calc_output_dimensions(info);
  *status = MakeRoomForPicture({.height = info->output_height,
                                .width = info->output_width,
                                .channels = options.channels,
                                .extra_bytes = MemoryOfDecoder(info, blocks)},
                               options.memory, out);
  if (!status->ok()) return true;
  if (cmyk) row->resize(4 * static_cast<size_t>(info->output_width));
  jpeg_start_decompress(info);
  const size_t stride = static_cast<size_t>(out->width * out->channels);
  while (info->output_scanline < info->output_height) {
    uint8_t* const target = out->pixels.data() + info->output_scanline * stride;
    uint8_t* line = cmyk ? row->data() : target;
    jpeg_read_scanlines(info, &line, 1);
    if (cmyk) RowFromCmyk(line, out->width, out->channels, info->saw_Adobe_marker, target);
  }
  jpeg_finish_decompress(info);
  return true;
}

}  // namespace

absl::Status DecodeJpeg(std::span<const uint8_t> file, const DecodeOptions& options, Picture* out) {
  JpegDecoder decoder = {};
  Open(file, &decoder);
  std::vector<uint8_t> row;
  absl::Status status;
  const bool decoded = Decode(file.size(), options, &decoder, out, &row, &status);
  const size_t place = file.size() - decoder.source.bytes_in_buffer;
  jpeg_destroy_decompress(&decoder.info);
  if (decoded) return status;
  if (decoder.too_short) {
    return absl::DataLossError(
        absl::StrCat("ends early, at byte ", file.size(), ", inside the JPEG"));
  }
  return absl::DataLossError(
      absl::StrCat("damaged JPEG at byte ", place, ": ", std::string(decoder.message)));
}

}  // namespace shoal
