#include "common/checkpoint/checkpoint_verification.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

absl::StatusOr<uint32_t> ChecksumOf(const File& file, uint64_t offset, uint64_t size) {
  uint32_t crc = 0;
  SHOAL_RETURN_IF_ERROR(file.ReadPieces(offset, size, [&](const char* data, size_t piece) {
    crc = Crc32c(crc, data, piece);
    return absl::OkStatus();
  }));
  return crc;
}

// Counts by bits instead of comparing numbers. This keeps the loop free of branches.
bool AllFinite(const char* data, size_t size_bytes) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones for NaN and infinities
  size_t others = 0;
  for (size_t i = 0; i < size_bytes; i += sizeof(float)) {
    uint32_t bits;
    std::memcpy(&bits, data + i, sizeof(bits));
    others += (bits & kExponent) == kExponent;
  }
  return others == 0;
}

// Checks a ps's part against the checksum from the ps. If `not_finite` is empty, sets it to the
// first tensor with a value that is not finite. All values of a checkpoint pass here once, also
// those that a ps only loaded.
absl::Status CheckPart(const File& opened, const CheckpointLayout::File& file,
                       const WrittenPart& part, std::string* not_finite) {
  uint32_t crc = 0;
  uint64_t at = part.offset_bytes;
  SHOAL_RETURN_IF_ERROR(
      opened.ReadPieces(part.offset_bytes, part.size_bytes, [&](const char* data, size_t piece) {
        crc = Crc32c(crc, data, piece);
        if (not_finite->empty() && !AllFinite(data, piece)) {
          size_t value = 0;
          while (AllFinite(data + value, sizeof(float))) value += sizeof(float);
          for (const TensorEntry& tensor : file.layout.tensors) {
            if (at + value >= tensor.begin && at + value < tensor.begin + tensor.size)
              *not_finite = tensor.name;
          }
        }
        at += piece;
        return absl::OkStatus();
      }));
  if (crc == part.crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      opened.path(), ": the ", part.size_bytes, " bytes at ", part.offset_bytes, " have checksum ",
      ChecksumText(crc), ", the ps that wrote them says ", ChecksumText(part.crc32c)));
}

absl::Status WrongSize(const std::string& path, uint64_t there, uint64_t expected,
                       const char* source) {
  return absl::DataLossError(
      absl::StrCat(path, " is damaged: it has ", there, " bytes, ", source, " says ", expected));
}

}  // namespace

absl::Status VerifyFile(const StoredCheckpoint& checkpoint, const Manifest::File& file,
                        FileSystem* files) {
  const std::string path = absl::StrCat(checkpoint.directory, "/", file.name);
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                         files->Open(path, FileSystem::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t size, opened->Size());
  if (size != file.size_bytes) return WrongSize(path, size, file.size_bytes, "the manifest");
  SHOAL_ASSIGN_OR_RETURN(const uint32_t crc, ChecksumOf(*opened, 0, size));
  if (crc != file.crc32c) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: its checksum is ",
                                            ChecksumText(crc), ", the manifest says ",
                                            ChecksumText(file.crc32c)));
  }
  if (file.name == kJobName && crc != checkpoint.manifest.job_fingerprint) {
    return absl::DataLossError(absl::StrCat(path, " is of the job with fingerprint ",
                                            ChecksumText(crc), ", the manifest of one with ",
                                            ChecksumText(checkpoint.manifest.job_fingerprint)));
  }
  if (absl::EndsWith(file.name, ".safetensors")) {
    const auto tensors = SafetensorsFile::Open(path, files);
    if (!tensors.ok()) return absl::DataLossError(std::string(tensors.status().message()));
  }
  return absl::OkStatus();
}

absl::Status VerifyCheckpoint(const StoredCheckpoint& checkpoint, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const Manifest now, Manifest::Read(checkpoint.directory, files));
  if (now.ToText() != checkpoint.manifest.ToText()) {
    return absl::DataLossError(
        absl::StrCat(checkpoint.directory, "/", kManifestName, " has changed since it was listed"));
  }
  for (const Manifest::File& file : checkpoint.manifest.files) {
    SHOAL_RETURN_IF_ERROR(VerifyFile(checkpoint, file, files));
  }
  return absl::OkStatus();
}

// kFailedPrecondition: there is something else in the place of a file.
bool IsCheckpointDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
         absl::IsFailedPrecondition(status);
}

absl::StatusOr<CheckedFile> CheckWrittenFile(const std::string& directory,
                                             const CheckpointLayout::File& file,
                                             std::vector<WrittenPart> parts, FileSystem* files) {
  const std::string path = absl::StrCat(directory, "/", file.name);
  const std::string& header = file.layout.header;
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                         files->Open(path, FileSystem::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t size, opened->Size());
  if (size != file.layout.file_size) {
    return WrongSize(path, size, file.layout.file_size, "its layout");
  }
  std::string header_there(header.size(), '\0');
  SHOAL_RETURN_IF_ERROR(opened->ReadAt(0, header_there.data(), header.size()));
  if (header_there != header) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: its header does not match the layout"));
  }

  std::sort(parts.begin(), parts.end(), [](const WrittenPart& a, const WrittenPart& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  uint64_t end = header.size();
  CheckedFile checked{{file.name, size, Crc32c(header)}, ""};
  for (const WrittenPart& part : parts) {
    if (part.offset_bytes != end) {
      return absl::DataLossError(absl::StrCat(path, ": bytes from ",
                                              std::min(end, part.offset_bytes), " to ",
                                              std::max(end, part.offset_bytes), " were written by ",
                                              part.offset_bytes > end ? "no ps" : "two ps"));
    }
    if (part.size_bytes > size - end) {
      return absl::DataLossError(absl::StrCat(path, ": a ps wrote ", part.size_bytes, " bytes at ",
                                              end, ", but the file has ", size));
    }
    if (part.size_bytes % sizeof(float) != 0) {
      return absl::DataLossError(absl::StrCat(path, ": a ps wrote ", part.size_bytes, " bytes at ",
                                              end, ", not a multiple of 4"));
    }
    SHOAL_RETURN_IF_ERROR(CheckPart(*opened, file, part, &checked.not_finite));
    checked.entry.crc32c = Crc32cConcat(checked.entry.crc32c, part.crc32c, part.size_bytes);
    end += part.size_bytes;
  }
  if (end != size) {
    return absl::DataLossError(
        absl::StrCat(path, ": bytes from ", end, " to ", size, " were written by no ps"));
  }
  SHOAL_RETURN_IF_ERROR(opened->Sync());
  return checked;
}

}  // namespace shoal
