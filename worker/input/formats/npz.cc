// .npz: a zip archive of .npy files, as numpy.savez and numpy.savez_compressed write it.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/array_rows.h"
#include "worker/input/data_formats.h"
#include "worker/input/file_content.h"
#include "worker/input/joined_errors.h"
#include "worker/input/zip_archive.h"

namespace shoal {
namespace {

absl::StatusOr<std::unique_ptr<ArrayFile>> OpenMember(ZipArchive& archive,
                                                      const std::string& array) {
  const std::string name = absl::StrCat(archive.path(), ": ", array, ".npy");
  SHOAL_ASSIGN_OR_RETURN(ZipArchive::Member member, archive.OpenMember(array + ".npy"));
  return ArrayFile::FromStream(name, [&member](std::span<char> out) { return member.Read(out); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> OpenNpz(const DataSource& source,
                                                 const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ExpandPaths(source.paths));
  if (paths.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths[0], ": is one of ", paths.size(), " files; expected one .npz"));
  }
  SHOAL_ASSIGN_OR_RETURN(ZipArchive archive, ZipArchive::Open(paths[0]));
  absl::Status status;
  ArrayRows::Arrays arrays;
  for (const DataSource::Feature& feature : source.features) {
    absl::StatusOr<std::unique_ptr<ArrayFile>> array = OpenMember(archive, feature.from[0]);
    status = JoinErrors(status, array.status());
    if (array.ok()) arrays.features.push_back(*std::move(array));
  }
  absl::StatusOr<std::unique_ptr<ArrayFile>> labels = OpenMember(archive, source.labels);
  SHOAL_RETURN_IF_ERROR(JoinErrors(status, labels.status()));
  arrays.labels = *std::move(labels);
  return ArrayRows::Make(source.features, std::move(arrays), inputs);
}

}  // namespace shoal
