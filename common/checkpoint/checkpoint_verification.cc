#include "common/checkpoint/checkpoint_verification.h"

#include <algorithm>
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
    return absl::DataLossError(absl::StrCat(checkpoint.directory, "/", kManifestName,
                                            " is not what it was when it was listed"));
  }
  for (const Manifest::File& file : checkpoint.manifest.files) {
    SHOAL_RETURN_IF_ERROR(VerifyFile(checkpoint, file, files));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest::File> CheckWrittenFile(const std::string& directory,
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
    return absl::DataLossError(absl::StrCat(path, " is damaged: its header is not as laid out"));
  }

  std::sort(parts.begin(), parts.end(), [](const WrittenPart& a, const WrittenPart& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  uint64_t end = header.size();
  uint32_t file_crc = Crc32c(header);
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
    SHOAL_ASSIGN_OR_RETURN(const uint32_t crc, ChecksumOf(*opened, end, part.size_bytes));
    if (crc != part.crc32c) {
      return absl::DataLossError(absl::StrCat(
          path, ": the ", part.size_bytes, " bytes at ", end, " have checksum ", ChecksumText(crc),
          ", the ps that wrote them says ", ChecksumText(part.crc32c)));
    }
    file_crc = Crc32cConcat(file_crc, crc, part.size_bytes);
    end += part.size_bytes;
  }
  if (end != size) {
    return absl::DataLossError(
        absl::StrCat(path, ": bytes from ", end, " to ", size, " were written by no ps"));
  }
  SHOAL_RETURN_IF_ERROR(opened->Sync());
  return Manifest::File{file.name, size, file_crc};
}

}  // namespace shoal
