#include "worker/input/pictures/picture.h"

#include <algorithm>
#include <exception>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/memory/memory_limit.h"

namespace shoal {
namespace {

bool BeginsWith(std::span<const uint8_t> file, std::string_view magic) {
  return file.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

}  // namespace

bool IsJpeg(std::span<const uint8_t> file) { return BeginsWith(file, "\xff\xd8\xff"); }
bool IsPng(std::span<const uint8_t> file) { return BeginsWith(file, "\x89PNG\r\n\x1a\n"); }

absl::Status DecodePicture(std::span<const uint8_t> file, const DecodeOptions& options,
                           Picture* out) {
  if (IsJpeg(file)) return DecodeJpeg(file, options, out);
  if (IsPng(file)) return DecodePng(file, options, out);
  if (file.empty()) return absl::DataLossError("the file is empty; expected a JPEG or PNG");
  for (const auto& [magic, name] : {std::pair("GIF8", "GIF"), {"BM", "BMP"}, {"RIFF", "WebP"}}) {
    if (BeginsWith(file, magic)) {
      return absl::UnimplementedError(
          absl::StrCat("at byte 0: begins as a ", name, " does; Shoal reads JPEG and PNG"));
    }
  }
  const std::string_view head(reinterpret_cast<const char*>(file.data()),
                              std::min<size_t>(file.size(), 6));
  return absl::DataLossError(
      absl::StrCat("at byte 0: \"", Printable(head, 24), "\" begins neither a JPEG nor a PNG"));
}

absl::Status MakeRoomForPicture(const PictureNeeds& needs, MemoryBudget* memory, Picture* out) {
  const int64_t height = needs.height, width = needs.width;
  if (height < 1 || width < 1 || height > kMaxPixels / width) {
    return absl::DataLossError(absl::StrCat("its header says ", width, " x ", height,
                                            " pixels; expected 1 to ", kMaxPixels, " in all"));
  }
  const auto size = static_cast<size_t>(height * width * needs.channels);
  const uint64_t bytes = size + needs.extra_bytes;
  if (bytes > ReadingMemory::kMaxDecoding) {
    return absl::DataLossError(
        absl::StrCat("its header says ", width, " x ", height, " pixels, which take ", bytes,
                     " bytes to decode; expected at most ", ReadingMemory::kMaxDecoding));
  }
  out->height = height;
  out->width = width;
  out->channels = needs.channels;
  if (size > out->pixels.capacity()) out->pixels = {};  // avoids a copy of the old pixels
  out->memory = {};
  if (memory != nullptr && bytes > ReadingMemory::kMaxKept) out->memory = memory->Take(bytes);
  try {
    out->pixels.reserve(size);
    out->pixels.resize(size);
  } catch (const std::exception&) {
    return OutOfMemory(absl::StrCat("a picture of ", width, " x ", height, " pixels"));
  }
  return absl::OkStatus();
}

absl::Status CannotHold(int64_t height, int64_t width, uint64_t file_bytes) {
  return absl::DataLossError(absl::StrCat("its header says ", width, " x ", height,
                                          " pixels; a file of ", file_bytes,
                                          " bytes cannot hold that many"));
}

}  // namespace shoal
