#include "common/archive/keras_archive.h"

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/archive/zip_archive.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

constexpr char kConfigName[] = "config.json";
constexpr char kWeightsName[] = "model.weights.h5";
constexpr char kMetadataName[] = "metadata.json";
// The archive has the layout that Keras uses since 3.0. This is the oldest version that was tested.
constexpr char kMetadata[] = "{\"keras_version\": \"3.0.5\"}";
constexpr size_t kPieceBytes = size_t{1} << 20;

// Rejects names that would harm a program that unpacks the archive. Shoal unpacks nothing, but such
// a name shows a malicious archive.
absl::Status CheckNames(const ZipArchive& archive) {
  const std::vector<std::string> names = archive.Names();
  if (names.size() >= static_cast<size_t>(kMaxZipNames)) {
    return absl::DataLossError(
        absl::StrCat(archive.path(), ": has ", kMaxZipNames,
                     " members or more; a model that Keras saves has fewer"));
  }
  for (const std::string& name : names) {
    const std::vector<std::string> parts = absl::StrSplit(name, absl::ByAnyChar("/\\"));
    for (const std::string& part : parts) {
      if (part != ".." && !name.empty() && name[0] != '/') continue;
      return absl::DataLossError(absl::StrCat(archive.path(), ": its member \"",
                                              Printable(name, kMaxNameBytes),
                                              "\" has a path outside the archive"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ZipArchive> OpenArchive(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(ZipArchive archive, ZipArchive::Open(path));
  SHOAL_RETURN_IF_ERROR(CheckNames(archive));
  return archive;
}

}  // namespace

bool IsZipArchive(const std::string& path) {
  const absl::StatusOr<ByteSource> file = OpenByteSource(path);
  char signature[4];
  return file.ok() && file->size >= sizeof(signature) &&
         file->read(0, signature, sizeof(signature)).ok() &&
         std::string_view(signature, sizeof(signature)) == "PK\x03\x04";
}

absl::StatusOr<std::string> ReadArchivedModel(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(ZipArchive archive, OpenArchive(path));
  return archive.ReadMember(kConfigName, kMaxJsonBytes);
}

absl::StatusOr<ByteSource> OpenArchivedWeights(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(ZipArchive opened, OpenArchive(path));
  auto archive = std::make_shared<ZipArchive>(std::move(opened));
  SHOAL_ASSIGN_OR_RETURN(ZipArchive::Member whole, archive->OpenMember(kWeightsName));
  if (whole.compressed()) {
    return absl::InvalidArgumentError(
        absl::StrCat(whole.name(),
                     ": is compressed; Keras writes it uncompressed. Save the model again:\n"
                     "  python -c 'import keras; keras.models.load_model(\"",
                     path, "\").save(\"stored.keras\")'"));
  }
  std::vector<char> piece(kPieceBytes);
  uint64_t size = 0;
  for (size_t count = piece.size(); count == piece.size(); size += count) {
    SHOAL_ASSIGN_OR_RETURN(count, whole.Read(piece));
  }
  if (size != whole.size()) {
    return absl::DataLossError(
        absl::StrCat(whole.name(), ": has ", size, " bytes; the archive says ", whole.size()));
  }
  SHOAL_ASSIGN_OR_RETURN(ZipArchive::Member opened_member, archive->OpenMember(kWeightsName));
  auto member = std::make_shared<ZipArchive::Member>(std::move(opened_member));
  return ByteSource{
      .name = member->name(),
      .size = member->size(),
      // Captures the archive too, because it must outlive its member.
      .read = [archive, member](uint64_t offset, void* out, uint64_t size) -> absl::Status {
        if (size == 0) return absl::OkStatus();
        SHOAL_RETURN_IF_ERROR(member->Seek(offset));
        SHOAL_ASSIGN_OR_RETURN(const size_t count, member->Read({static_cast<char*>(out), size}));
        if (count == size) return absl::OkStatus();
        return absl::DataLossError(absl::StrCat(member->name(), ": ends at byte ", offset + count,
                                                "; expected at least ", offset + size, " bytes"));
      }};
}

absl::Status WriteKerasArchive(const std::string& path, const std::string& model_json,
                               const std::string& weights) {
  SHOAL_RETURN_IF_ERROR(WriteZipArchive(path, {{.name = kMetadataName, .text = kMetadata},
                                               {.name = kConfigName, .text = model_json},
                                               {.name = kWeightsName, .file = weights}}));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         RealFileSystem()->Open(path, FileSystem::Mode::kWrite));
  return file->Sync();
}

}  // namespace shoal
